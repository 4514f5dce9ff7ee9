package dev.weft.tensor;

import dev.weft.tensor.MatrixFiles.Located;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/**
 * NumPy's {@code .npy} files with one two-dimensional array. Thread-safe.
 *
 * <pre>
 * 0   93 'N' 'U' 'M' 'P' 'Y'
 * 6   major version 1, 2 or 3; minor version 0
 * 8   header length, little-endian: 2 bytes in version 1, 4 bytes after it
 * 10  (12) header: a Python dictionary as text, spaces, a newline; data starts at a multiple of 64
 * </pre>
 *
 * <p>NumPy itself has no bf16. It saves extension types as two opaque bytes ({@code <V2}); some
 * programs write the word {@code bfloat16}. Both are read as bf16. bf16 is written as {@code <V2},
 * which {@code numpy.load} accepts; {@code .view(bfloat16)} then gives it its type. Likewise 8-bit
 * types: they are written as {@code |u1}, and ml_dtypes saves all but e5m2 ({@code <f1}) as {@code
 * <V1}, so the caller has to know which they are.
 */
final class NpyFile {

    private static final byte[] MAGIC = {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y'};
    private static final int VERSION_END = MAGIC.length + 2;
    private static final int DATA_ALIGNMENT_BYTES = 64;

    /** Only arrays of structures have longer headers, and those are not matrices. */
    private static final int MAX_HEADER_BYTES = 0xFFFF;

    private NpyFile() {}

    /**
     * @param expected the type of a file that only says that its elements are bytes, or null
     */
    static Located locate(InputFile file, DType expected) throws IOException {
        byte[] start = file.bytes(0, VERSION_END, "start");
        if (!Arrays.equals(start, 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
            throw file.refusal("is not an .npy file: it does not start with \\x93NUMPY");
        }
        int major = start[MAGIC.length] & 0xFF;
        int minor = start[MAGIC.length + 1] & 0xFF;
        if (major < 1 || major > 3 || minor != 0) {
            throw file.refusal(
                    "is an .npy file of version %s.%s: expected 1.0, 2.0 or 3.0"
                            .formatted(major, minor));
        }
        int headerStart = VERSION_END + (major == 1 ? 2 : 4);
        int headerBytes = headerBytes(file, headerStart);
        String text =
                new String(
                        file.bytes(headerStart, headerBytes, "header"),
                        major == 3 ? StandardCharsets.UTF_8 : StandardCharsets.ISO_8859_1);
        NpyHeader header = NpyHeader.parse(text, file);
        DType dtype = header.isFloat64() ? DType.FP32 : header.dtype(file, expected);
        header.checkMatrix(file);
        long dataStart = (long) headerStart + headerBytes;
        long rows = header.shape().get(0);
        long cols = header.shape().get(1);
        boolean fortran = header.fortranOrder();
        return file.rest(dataStart, dtype, header.isFloat64(), fortran, rows, cols);
    }

    private static int headerBytes(InputFile file, int headerStart) throws IOException {
        byte[] length = file.bytes(VERSION_END, headerStart - VERSION_END, "header length");
        ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        long headerBytes = bytes.put(length).getLong(0);
        if (headerBytes > MAX_HEADER_BYTES) {
            throw file.refusal(
                    "has a header of %s bytes: expected at most %s"
                            .formatted(headerBytes, MAX_HEADER_BYTES));
        }
        return (int) headerBytes;
    }

    /** Replaces the file with {@code matrix} in version 1.0, completely or not at all. */
    static void write(Path path, Matrix matrix) throws IOException {
        MatrixWriter.write(path, header(matrix), List.of(matrix));
    }

    /** The same bytes as NumPy writes. */
    private static byte[] header(Matrix matrix) {
        byte[] text = NpyHeader.text(matrix).getBytes(StandardCharsets.ISO_8859_1);
        int unpadded = VERSION_END + 2 + text.length + 1;
        // As in NumPy, a header that already ends on the boundary gets 64 more bytes.
        int total = unpadded + DATA_ALIGNMENT_BYTES - unpadded % DATA_ALIGNMENT_BYTES;
        byte[] header = new byte[total];
        Arrays.fill(header, (byte) ' ');
        ByteBuffer.wrap(header)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put(MAGIC)
                .put((byte) 1)
                .put((byte) 0)
                .putShort((short) (total - VERSION_END - 2))
                .put(text);
        header[total - 1] = '\n';
        return header;
    }
}
