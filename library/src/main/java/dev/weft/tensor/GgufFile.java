package dev.weft.tensor;

import dev.weft.process.SafeText;
import dev.weft.tensor.GgufHeader.Entry;
import dev.weft.tensor.MatrixFiles.Located;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * GGUF files: several named tensors. Weft reads those that are matrices of fp32, fp16, bf16 or
 * blocks ({@link BlockType}); a vector is a matrix of one row. A tensor must begin where the one
 * before it ends; the size of one whose type Weft does not know is not checked. Thread-safe.
 */
final class GgufFile {

    private static final Map<Integer, DType> TYPES =
            Map.of(0, DType.FP32, 1, DType.FP16, 30, DType.BF16);

    private static final long UNKNOWN = -1;

    private GgufFile() {}

    static Located locate(InputFile file, String tensor) throws IOException {
        GgufHeader header = GgufHeader.parse(file);
        long dataStart = header.dataStart();
        checkOffsets(header, file.sizeBytes() - dataStart, file);
        Entry entry = header.tensors().get(tensor);
        if (entry == null) {
            throw file.refusal(
                    "has no tensor '%s': it has %s"
                            .formatted(
                                    SafeText.excerpt(tensor),
                                    SafetensorsFile.list(header.tensors().keySet())));
        }
        long[] shape = entry.shape();
        String what = "holds tensor '" + SafeText.excerpt(tensor) + "' ";
        if (shape.length != 1 && shape.length != 2) {
            throw file.refusal(
                    "%sof %s dimensions: expected 2, rows and columns, or 1"
                            .formatted(what, shape.length));
        }
        long rows = shape.length == 1 ? 1 : shape[1];
        DType dtype = TYPES.get(entry.type());
        BlockType blocks = BlockType.ofNumber(entry.type());
        if (dtype == null && blocks == null) {
            throw file.refusal(
                    "%sof type number %s: expected F32, F16, BF16, Q8_0, Q4_0, Q2_K, Q4_K, Q5_K, Q6_K or IQ2_XXS"
                            .formatted(what, Integer.toUnsignedString(entry.type())));
        }
        long position = dataStart + entry.offset();
        return dtype != null
                ? file.located(position, dtype, rows, shape[0])
                : file.located(position, blocks, rows, shape[0]);
    }

    /** Every byte of tensors has one owner, except for less than an alignment between them. */
    private static void checkOffsets(GgufHeader header, long dataBytes, InputFile file) {
        List<Map.Entry<String, Entry>> inOrder = new ArrayList<>(header.tensors().entrySet());
        inOrder.sort(Comparator.comparingLong(tensor -> tensor.getValue().offset()));
        int alignment = header.alignment();
        long next = 0;
        for (Map.Entry<String, Entry> tensor : inOrder) {
            String what = "places tensor '" + SafeText.excerpt(tensor.getKey()) + "' ";
            Entry entry = tensor.getValue();
            if (next != UNKNOWN && entry.offset() != next) {
                throw file.refusal(
                        "%sat byte %s: expected %s, where the one before it ends"
                                .formatted(what, entry.offset(), next));
            }
            long bytes = bytes(entry, what, file);
            // An unknown size counts as one byte.
            if (entry.offset() > dataBytes - Math.max(1, bytes)) {
                throw file.refusal(
                        "%sat bytes %s to %s: the file has %s for tensors"
                                .formatted(
                                        what,
                                        entry.offset(),
                                        bytes == UNKNOWN ? "?" : entry.offset() + bytes,
                                        Math.max(0, dataBytes)));
            }
            next =
                    bytes == UNKNOWN
                            ? UNKNOWN
                            : Math.ceilDiv(entry.offset() + bytes, alignment) * alignment;
        }
        if (next != UNKNOWN && dataBytes > next) {
            throw file.refusal(
                    "holds %s bytes of tensors: its header accounts for %s"
                            .formatted(dataBytes, next));
        }
    }

    private static long bytes(Entry entry, String what, InputFile file) {
        DType dtype = TYPES.get(entry.type());
        BlockType blocks = BlockType.ofNumber(entry.type());
        if (dtype == null && blocks == null) {
            return UNKNOWN;
        }
        long[] shape = entry.shape();
        try {
            long fastest = shape.length == 0 ? 1 : shape[0];
            long bytes =
                    dtype != null
                            ? Math.multiplyExact(fastest, (long) dtype.bytes())
                            : blocks.rowBytes(fastest);
            for (int i = 1; i < shape.length; i++) {
                bytes = Math.multiplyExact(bytes, shape[i]);
            }
            // Room for adding the offset and the alignment.
            return Math.min(bytes, Long.MAX_VALUE / 2);
        } catch (ArithmeticException e) {
            throw file.refusal(what + "with a size beyond 64 bits", e);
        } catch (IllegalArgumentException e) {
            throw file.refusal(what + "with " + e.getMessage(), e);
        }
    }
}
