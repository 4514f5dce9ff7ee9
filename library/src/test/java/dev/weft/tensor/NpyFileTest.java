package dev.weft.tensor;

import static dev.weft.tensor.Refusals.assertRefused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.data.NormalData;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class NpyFileTest {

    private static final String PLAIN =
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

    private final Arena arena = Arena.ofAuto();

    @TempDir private Path folder;

    @ParameterizedTest
    @CsvSource({
        "FP32, <f4, 3, 5",
        "FP16, <f2, 3, 5",
        "BF16, <V2, 3, 5",
        "FP32, <f4, 0, 12",
        "FP16, <f2, 7, 0"
    })
    void writesTheBytesThatNumPyWrites(DType dtype, String descr, int rows, int cols)
            throws IOException {
        Matrix matrix = normal(dtype, rows, cols);
        Path path = folder.resolve("a.npy");
        NpyFile.write(path, matrix);
        byte[] bytes = Files.readAllBytes(path);

        String dictionary =
                "{'descr': '"
                        + descr
                        + "', 'fortran_order': False, 'shape': ("
                        + rows
                        + ", "
                        + cols
                        + "), }";
        byte[] expected = new byte[128];
        Arrays.fill(expected, (byte) 0x20);
        byte[] start = {(byte) 0x93, 0x4E, 0x55, 0x4D, 0x50, 0x59, 0x01, 0x00, 0x76, 0x00};
        System.arraycopy(start, 0, expected, 0, 10);
        byte[] text = dictionary.getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(text, 0, expected, 10, text.length);
        expected[127] = 0x0A;
        assertArrayEquals(expected, Arrays.copyOf(bytes, 128));
        assertEquals(128 + rows * cols * dtype.bytes(), bytes.length);
        assertTrue(read(path).bitwiseEquals(matrix));
    }

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP32", "FP16", "BF16"})
    void writesViewsWithGapsWithoutTheGaps(DType dtype) throws IOException {
        Matrix view = normal(dtype, 40, 30).block(3, 30, 5, 7);
        Path path = folder.resolve("view.npy");
        NpyFile.write(path, view);
        Matrix back = read(path);
        assertTrue(back.isContiguous() && back.bitwiseEquals(view));
    }

    @Test
    void elementsAreLittleEndianRowAfterRow() throws IOException {
        byte[] file = file(1, PLAIN, 24);
        ByteBuffer elements = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < 6; i++) {
            elements.putFloat(file.length - 24 + 4 * i, i + 0.5f);
        }
        Matrix matrix = read(save(file));
        assertEquals("[2, 3] fp32", matrix.describe());
        assertEquals(0.5f, matrix.get(0, 0));
        assertEquals(2.5f, matrix.get(0, 2));
        assertEquals(3.5f, matrix.get(1, 0));
        assertThrows(IllegalArgumentException.class, () -> matrix.set(0, 0, 1), "it is read-only");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void readsEveryVersion(int version) throws IOException {
        assertEquals("[2, 3] fp32", read(save(file(version, PLAIN, 24))).describe());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}",
                "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}",
                "  { 'shape' : ( 2 , 3 , ) , 'descr' : '<f4' , 'fortran_order' : False , }  \n\n",
            })
    void readsOtherSpellingsOfTheSameHeader(String dictionary) throws IOException {
        assertEquals("[2, 3] fp32", read(save(file(1, dictionary, 24))).describe());
    }

    @ParameterizedTest
    @ValueSource(strings = {"<V2", "|V2", "bfloat16"})
    void readsEveryNameOfBf16(String descr) throws IOException {
        Path path = save(file(1, PLAIN.replace("<f4", descr), 12));
        assertEquals("[2, 3] bf16", read(path).describe());
    }

    @Test
    void float64IsRoundedToFp32() throws IOException {
        byte[] file = file(1, PLAIN.replace("<f4", "<f8"), 48);
        double[] values = {0.1, -1 / 3.0, 1e300, Double.NaN, 1 + 0x1p-24, 1e-60};
        ByteBuffer elements = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < values.length; i++) {
            elements.putDouble(file.length - 48 + 8 * i, values[i]);
        }
        Matrix matrix = read(save(file));
        assertEquals("[2, 3] fp32", matrix.describe());
        for (int i = 0; i < values.length; i++) {
            assertEquals((float) values[i], matrix.get(i / 3, i % 3));
        }
        Matrix block = Matrix.allocate(Arena.ofAuto(), DType.FP32, 1, 2);
        MatrixFiles.locate(save(file).toString(), null, 2, 3).read(1, 1, block);
        assertEquals((float) values[4], block.get(0, 0));
        assertEquals(0, block.get(0, 1));
        refused(PLAIN.replace("<f4", "<f8"), 47, "holds 47 bytes of elements: expected 48");
        refused(PLAIN.replace("<f4", "<f8").replace("2, 3", "2305843009213693951, 1"), 8, "holds");
    }

    /** What {@code numpy.save(file, w.T)} writes. */
    @ParameterizedTest
    @CsvSource({"<f4, 4", "<f2, 2", "<V2, 2", "<f8, 8", "<f1, 1"})
    void fortranOrderIsRead(String descr, int bytes) throws IOException {
        String columns = PLAIN.replace("<f4", descr).replace("False", "True");
        byte[] turned = file(1, columns.replace("2, 3", "3, 2"), 6 * bytes);
        byte[] plain = file(1, PLAIN.replace("<f4", descr), 6 * bytes);
        for (int i = 1; i <= 6 * bytes; i++) {
            byte value = (byte) (37 * i);
            turned[turned.length - i] = value;
            plain[plain.length - i] = value;
        }
        Matrix rows = read(save(plain)).converted(arena, DType.FP32);
        Path path = save(turned);
        Matrix all = read(path);
        assertEquals("[3, 2] " + all.dtype().label(), all.describe());
        // Parts of columns, and whole ones.
        Matrix part = Matrix.allocate(arena, all.dtype(), 2, 1);
        MatrixFiles.locate(path.toString(), null, 3, 2).read(1, 1, part);
        for (int row = 0; row < 3; row++) {
            for (int col = 0; col < 2; col++) {
                assertEquals(rows.get(col, row), all.get(row, col), row + ", " + col);
            }
        }
        assertEquals(rows.get(1, 1), part.get(0, 0));
        assertEquals(rows.get(1, 2), part.get(1, 0));
        refused(columns, 6 * bytes - 1, "holds %d bytes of elements".formatted(6 * bytes - 1));
    }

    /** ml_dtypes gives e5m2 a name of its own; e4m3 and Weft's own files are plain bytes. */
    @Test
    void eightBitTypesAreReadIfSomebodyKnowsWhichTheyAre() throws IOException {
        Path named = save(file(1, PLAIN.replace("<f4", "<f1"), 6));
        assertEquals("[2, 3] e5m2", read(named).describe());
        for (String bytes : new String[] {"<V1", "|V1", "|u1"}) {
            refused(PLAIN.replace("<f4", bytes), 6, "bytes ('" + bytes + "')", "e4m3 or e5m2");
            Path path = save(file(1, PLAIN.replace("<f4", bytes), 6));
            for (DType type : new DType[] {DType.E4M3, DType.E5M2}) {
                Matrix read = MatrixFiles.read(path.toString(), type, 2, 3, arena);
                assertEquals("[2, 3] " + type.label(), read.describe());
            }
            assertRefused(
                    path,
                    () -> MatrixFiles.read(path.toString(), DType.BF16, 2, 3, arena),
                    "e4m3 or e5m2");
        }
        for (DType type : new DType[] {DType.E4M3, DType.E5M2}) {
            Matrix own = normal(type, 3, 5);
            Path path = folder.resolve("own.npy");
            NpyFile.write(path, own);
            assertTrue(MatrixFiles.read(path.toString(), type, 3, 5, arena).bitwiseEquals(own));
        }
    }

    @Test
    void refusesArraysThatAreNoMatrixOfItsTypes() throws IOException {
        refused(PLAIN.replace("<f4", ">f4"), 24, "big-endian ('>f4')", "'<f4'");
        refused(PLAIN.replace("<f4", "<i8"), 48, "type '<i8'", "'<f4', '<f2', '<V2' (bf16)");
        refused(PLAIN.replace("'<f4'", "[('x', '<f4')]"), 24, "[('x', '<f4')]");
        refused(PLAIN.replace("2, 3", "6,"), 24, "1 dimensions [6]", "expected 2", "reshape");
        refused(PLAIN.replace("2, 3", ""), 4, "0 dimensions []");
        refused(PLAIN.replace("2, 3", "1, 2, 3"), 24, "3 dimensions [1, 2, 3]");
        refused(PLAIN.replace("2, 3", "1, ".repeat(65)), 4, "more than 64 dimensions");
    }

    @Test
    void refusesSizesThatTheFileDoesNotHave() throws IOException {
        refused(PLAIN, 20, "20 bytes of elements: expected 24 for [2, 3] fp32");
        refused(PLAIN, 25, "25 bytes of elements: expected 24 for [2, 3] fp32");
        refused(PLAIN.replace("2, 3", "-2, 3"), 24, "'-2, 3), }", "a size of zero or more");
        refused(PLAIN.replace("2, 3", "4611686018427387904, 4"), 24, "64-bit");
        refused(PLAIN.replace("2, 3", "0, 4611686018427387904"), 0, "64-bit");
        refused(PLAIN.replace("2, 3", "3037000500, 3037000500"), 24, "64-bit");
        refused(PLAIN.replace("2, 3", "9223372036854775808, 1"), 24, "9223372036854775808");
        refused(PLAIN.replace("2, 3", "9".repeat(500) + ", 1"), 24, "does not fit 64 bits");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{}",
                "{'descr': '<f4'}",
                "{'descr': '<f4', 'fortran_order': False}",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
                "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
                "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
                "{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3)}",
                "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
                "{'descr': '\n\u0007', 'fortran_order': False, 'shape': (2, 3)}",
                "{'descr",
            })
    void refusesDamagedHeaders(String dictionary) throws IOException {
        refused(dictionary, 24);
    }

    @Test
    void refusesFilesThatEndTooSoon() throws IOException {
        byte[] whole = file(2, PLAIN, 24);
        for (int length = 0; length < whole.length; length++) {
            Path path = save(Arrays.copyOf(whole, length));
            assertRefused(path, () -> read(path));
        }
    }

    @Test
    void refusesOtherFilesAndVersions() throws IOException {
        Path text = save("a text, and no array".getBytes(StandardCharsets.US_ASCII));
        assertRefused(text, () -> read(text), "not an .npy file");
        Path later = save(file(4, PLAIN, 24));
        assertRefused(later, () -> read(later), "version 4.0", "1.0, 2.0 or 3.0");
        byte[] bytes = file(2, PLAIN, 24);
        Arrays.fill(bytes, 8, 12, (byte) 0xFF);
        Path huge = save(bytes);
        assertRefused(huge, () -> read(huge), "header of 4294967295 bytes", "65535");
    }

    private void refused(String dictionary, int elementBytes, String... parts) throws IOException {
        Path path = save(file(1, dictionary, elementBytes));
        assertRefused(path, () -> read(path), parts);
    }

    private Matrix normal(DType dtype, long rows, long cols) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(3, 1).fill(matrix);
        return matrix;
    }

    private Path save(byte[] bytes) throws IOException {
        return Files.write(folder.resolve("case.npy"), bytes);
    }

    /** A file with this header and as many zero bytes after it. */
    static byte[] file(int version, String dictionary, int elementBytes) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', (byte) version, 0});
        byte[] text = dictionary.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < (version == 1 ? 2 : 4); i++) {
            out.write(text.length >> 8 * i);
        }
        out.write(text);
        out.write(new byte[elementBytes]);
        return out.toByteArray();
    }

    /** A terminal takes some characters beyond ASCII for commands. */
    @Test
    void controlCharactersOfAHeaderAreNotRepeated() throws IOException {
        for (char control : new char[] {'\n', '\r', '\u001b', '\u0085', '\u009b', '\u2028'}) {
            Path path = save(file(3, "{'des" + control + "cr': '<f4'}", 8));
            assertRefused(path, () -> read(path), "'des?cr'");
        }
    }

    private Matrix read(Path path) throws IOException {
        return MatrixFiles.read(path.toString(), null, MatrixFiles.ANY, MatrixFiles.ANY, arena);
    }
}
