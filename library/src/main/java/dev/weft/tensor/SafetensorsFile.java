package dev.weft.tensor;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.process.SafeText;
import dev.weft.tensor.MatrixFiles.Located;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Safetensors files: several named tensors. Weft reads those that are matrices of fp32, fp16, bf16,
 * e4m3 or e5m2. Thread-safe.
 *
 * <pre>
 * 0      header length H, 8 bytes, little-endian
 * 8      H bytes of JSON: {"name":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}, ...}, spaces
 * 8 + H  the tensors, row after row, little-endian, without gaps
 * </pre>
 */
final class SafetensorsFile {

    /** The limit of the format. */
    private static final long MAX_HEADER_BYTES = 100_000_000;

    /** How many names are listed when the wanted one is missing. */
    private static final int LISTED_NAMES = 10;

    private static final Map<String, DType> TYPES =
            Arrays.stream(DType.values())
                    .collect(Collectors.toMap(SafetensorsFile::name, type -> type));

    private static final List<DType> WRITING_ORDER =
            List.of(DType.FP32, DType.BF16, DType.FP16, DType.E5M2, DType.E4M3);

    private SafetensorsFile() {}

    static Located locate(InputFile file, String tensor) throws IOException {
        int headerBytes = headerBytes(file);
        long dataStart = Long.BYTES + (long) headerBytes;
        SafetensorsHeader header =
                SafetensorsHeader.parse(
                        file.bytes(Long.BYTES, headerBytes, "header"),
                        file.sizeBytes() - dataStart,
                        file);
        SafetensorsHeader.Entry entry = header.tensors().get(tensor);
        if (entry == null) {
            throw file.refusal(
                    "has no tensor '" + tensor + "': it has " + list(header.tensors().keySet()));
        }
        return locate(file, tensor, entry, dataStart);
    }

    private static int headerBytes(InputFile file) throws IOException {
        long headerBytes =
                ByteBuffer.wrap(file.bytes(0, Long.BYTES, "header length"))
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .getLong();
        long limit = Math.min(MAX_HEADER_BYTES, file.sizeBytes() - Long.BYTES);
        if (headerBytes < 0 || headerBytes > limit) {
            throw file.refusal(
                    "has a header of %s bytes: expected at most %s"
                            .formatted(Long.toUnsignedString(headerBytes), limit));
        }
        return (int) headerBytes;
    }

    private static Located locate(
            InputFile file, String tensor, SafetensorsHeader.Entry entry, long dataStart) {
        String what = "holds tensor '" + SafeText.excerpt(tensor) + "' ";
        DType dtype = TYPES.get(entry.dtype());
        if (dtype == null) {
            throw file.refusal(
                    "%sof type %s: expected F32, F16, BF16, F8_E4M3 or F8_E5M2"
                            .formatted(what, SafeText.excerpt(entry.dtype())));
        }
        if (entry.shape().size() != 2) {
            throw file.refusal(
                    "%sof shape %s: expected 2 dimensions, rows and columns"
                            .formatted(what, SafeText.excerpt(entry.shape().toString())));
        }
        long rows = entry.shape().get(0);
        long cols = entry.shape().get(1);
        long expected = file.elementBytes(dtype, rows, cols);
        if (entry.end() - entry.begin() != expected) {
            throw file.refusal(
                    "%sin %s bytes: expected %s for [%s, %s] %s"
                            .formatted(
                                    what,
                                    entry.end() - entry.begin(),
                                    expected,
                                    rows,
                                    cols,
                                    dtype.label()));
        }
        return file.located(dataStart + entry.begin(), dtype, rows, cols);
    }

    /** Some of the names that a file has. */
    static String list(Collection<String> names) {
        if (names.isEmpty()) {
            return "none";
        }
        List<String> listed = names.stream().limit(LISTED_NAMES).map(SafeText::excerpt).toList();
        int more = names.size() - listed.size();
        return String.join(", ", listed) + (more == 0 ? "" : " and " + more + " more");
    }

    /**
     * Replaces the file with these matrices, completely or not at all. The widest elements come
     * first and equal types are ordered by name, so that all are aligned and the same tensors
     * always give the same bytes.
     */
    static void write(Path path, Map<String, Matrix> tensors) throws IOException {
        if (tensors.containsKey(SafetensorsHeader.METADATA)) {
            throw new IllegalArgumentException(
                    path + ": a tensor cannot be named " + SafetensorsHeader.METADATA);
        }
        List<Map.Entry<String, Matrix>> inOrder = new ArrayList<>(tensors.entrySet());
        inOrder.sort(
                Comparator.<Map.Entry<String, Matrix>>comparingInt(
                                t -> WRITING_ORDER.indexOf(t.getValue().dtype()))
                        .thenComparing(Map.Entry::getKey));
        MatrixWriter.write(
                path, header(inOrder), inOrder.stream().map(Map.Entry::getValue).toList());
    }

    private static String name(DType dtype) {
        return dtype.isScaled() ? "F8_" + dtype.name() : dtype.name().replace("FP", "F");
    }

    private static byte[] header(List<Map.Entry<String, Matrix>> tensors) throws IOException {
        ByteArrayOutputStream json = new ByteArrayOutputStream();
        try (JsonGenerator generator = SafetensorsHeader.JSON.createGenerator(json)) {
            generator.writeStartObject();
            long begin = 0;
            for (Map.Entry<String, Matrix> tensor : tensors) {
                Matrix matrix = tensor.getValue();
                long end = Math.addExact(begin, matrix.elementBytes());
                generator.writeObjectFieldStart(tensor.getKey());
                generator.writeStringField("dtype", name(matrix.dtype()));
                generator.writeFieldName("shape");
                generator.writeArray(new long[] {matrix.rows(), matrix.cols()}, 0, 2);
                generator.writeFieldName("data_offsets");
                generator.writeArray(new long[] {begin, end}, 0, 2);
                generator.writeEndObject();
                begin = end;
            }
            generator.writeEndObject();
        }
        int paddedBytes = Math.ceilDiv(json.size(), Long.BYTES) * Long.BYTES;
        byte[] header = new byte[Long.BYTES + paddedBytes];
        Arrays.fill(header, (byte) ' ');
        ByteBuffer.wrap(header)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(paddedBytes)
                .put(json.toByteArray());
        return header;
    }
}
