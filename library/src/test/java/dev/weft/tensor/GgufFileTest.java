package dev.weft.tensor;

import static dev.weft.tensor.Refusals.assertRefused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.GgufWriter.Tensor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GgufFileTest {

    private final Arena arena = Arena.ofAuto();

    @TempDir private Path folder;

    private Path path() {
        return folder.resolve("model.gguf");
    }

    private Matrix normal(DType type, long rows, long cols) {
        Random random = new Random(rows * 31 + cols);
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        matrix.fill(random::nextGaussian);
        return matrix;
    }

    private MatrixFiles.Located locate(String tensor) throws IOException {
        return MatrixFiles.locate(path() + ":" + tensor, null, -1, -1);
    }

    private static GgufWriter writer() {
        return new GgufWriter()
                .text("general.architecture", "llama")
                .number("llama.block_count", 2)
                .texts("tokens", "a", "", "\u00e9\u4e2d")
                .key("flag", 7)
                .value(new byte[] {1})
                .key("many", 9)
                .value(GgufWriter.word(12))
                .value(GgufWriter.twoWords(9000))
                .value(new byte[72000]);
    }

    @Test
    void tensorsOfAllTypesComeBackInBothVersions() throws IOException {
        for (int version : new int[] {2, 3}) {
            GgufWriter writer = writer();
            writer.version = version;
            for (DType type : DType.UNSCALED) {
                writer.tensor("t." + type.label(), normal(type, 3, 7));
            }
            QuantizedMatrix[] blocks =
                    BlockType.MULTIPLIED.stream()
                            .map(
                                    type ->
                                            QuantizedMatrix.ofB(
                                                    arena, normal(DType.FP32, 5, 512), true, type))
                            .toArray(QuantizedMatrix[]::new);
            for (QuantizedMatrix matrix : blocks) {
                writer.tensor("b." + matrix.type().label(), matrix);
            }
            writer.write(path());
            for (DType type : DType.UNSCALED) {
                Matrix back = MatrixFiles.read(path() + ":t." + type.label(), type, 3, 7, arena);
                assertTrue(back.bitwiseEquals(normal(type, 3, 7)), type.label());
            }
            for (QuantizedMatrix matrix : blocks) {
                String name = "b." + matrix.type().label();
                assertEquals("[5, 512] " + matrix.type().label(), locate(name).describe());
                Matrix values = matrix.dequantize(arena);
                assertTrue(locate(name).read(arena).bitwiseEquals(values), name);
                Matrix mapped = MatrixFiles.read(path() + ":" + name, DType.FP32, 5, 512, arena);
                assertTrue(mapped.bitwiseEquals(values), name);
                QuantizedMatrix back = locate(name).readBlocks(arena);
                assertEquals(-1, back.data().mismatch(matrix.data()), name);
                Matrix part = Matrix.allocate(arena, DType.FP32, 2, 300);
                locate(name).read(1, 39, part);
                assertTrue(part.bitwiseEquals(values.block(1, 2, 39, 300)), name);
            }
        }
    }

    @Test
    void blocksWithScalesThatAreNotFiniteAreRefused() throws IOException {
        for (BlockType type : BlockType.MULTIPLIED) {
            QuantizedMatrix blocks =
                    QuantizedMatrix.ofB(arena, normal(DType.FP32, 3, 512), true, type);
            // The second half of the last row; of Q4_K, its unit of offsets.
            long at = blocks.offset(2, 256) + (type == BlockType.Q4_K ? 2 : 0);
            blocks.data().set(DType.SHORT, at, (short) 0x7C00);
            writer().tensor("w", blocks).write(path());
            String block = "in which the block at row 2, column 256 has a scale that is infinite";
            assertRefused(path(), () -> locate("w").readBlocks(arena), block);
        }
    }

    @Test
    void anotherAlignmentIsFollowed() throws IOException {
        GgufWriter writer = writer().number("general.alignment", 128);
        writer.alignment = 128;
        writer.tensor("one", normal(DType.FP32, 1, 3)).tensor("two", normal(DType.FP16, 2, 2));
        writer.write(path());
        assertTrue(locate("two").read(arena).bitwiseEquals(normal(DType.FP16, 2, 2)));
    }

    @Test
    void otherTypesAndShapesAreRefusedOnlyIfWanted() throws IOException {
        writer().tensor(new Tensor("vector", new long[] {5}, 0, -1, new byte[20]))
                .tensor(new Tensor("scalar", new long[0], 0, -1, new byte[4]))
                .tensor("good", normal(DType.FP32, 1, 3))
                .tensor(new Tensor("odd", new long[] {32, 2}, 39, -1, new byte[34]))
                .write(path());
        assertEquals("[1, 3] fp32", locate("good").describe());
        assertEquals("[1, 5] fp32", locate("vector").describe());
        assertRefused(
                path(),
                () -> locate("scalar"),
                "holds tensor 'scalar' of 0 dimensions: expected 2");
        assertRefused(
                path(), () -> locate("odd"), "holds tensor 'odd' of type number 39: expected");
        assertRefused(
                path(),
                () -> locate("gone"),
                "has no tensor 'gone': it has vector, scalar, good, odd");
        assertRefused(
                path(),
                () -> MatrixFiles.locate(path().toString(), null, -1, -1),
                "say which tensor");
        assertRefused(
                path() + ":x",
                () -> MatrixFiles.write(path() + ":x", normal(DType.FP32, 1, 1)),
                "GGUF files are only read");
        assertRefused(
                path(), () -> locate("good").readBlocks(arena), "holds [1, 3] fp32: expected");
    }

    @Test
    void wrongPlacesAreRefused() throws IOException {
        check(
                writer().tensor(new Tensor("a", new long[] {32, 2}, 8, 0, new byte[68]))
                        .tensor(new Tensor("w", new long[] {4, 2}, 0, 64, new byte[32])),
                "places tensor 'w' at byte 64: expected 96, where the one before it ends");
        check(
                writer().tensor(new Tensor("w", new long[] {4, 2}, 0, 32, new byte[64])),
                "places tensor 'w' at byte 32: expected 0");
        check(
                writer().tensor(new Tensor("w", new long[] {4, 2}, 0, 7, new byte[64])),
                "describes tensor 'w' at byte 7: expected a multiple of 32");
        check(
                writer().tensor(new Tensor("w", new long[] {4, 3}, 0, 0, new byte[32])),
                "places tensor 'w' at bytes 0 to 48: the file has 32 for tensors");
        check(
                writer().tensor(new Tensor("w", new long[] {4, 2}, 0, 0, new byte[64])),
                "holds 64 bytes of tensors: its header accounts for 32");
        check(
                writer().tensor(new Tensor("w", new long[] {33, 2}, 8, 0, new byte[64])),
                "places tensor 'w' with rows of 33 elements in q8_0: expected a multiple of 32");
        check(
                writer().tensor(
                                new Tensor(
                                        "w", new long[] {1L << 40, 1L << 40}, 0, 0, new byte[64])),
                "places tensor 'w' with a size beyond 64 bits");
        Tensor good = new Tensor("w", new long[] {4, 2}, 0, -1, new byte[32]);
        check(writer().tensor(good).tensor(good), "describes tensor 'w' twice");
    }

    @Test
    void wrongHeadersAreRefused() throws IOException {
        Tensor good = new Tensor("w", new long[] {4, 2}, 0, -1, new byte[32]);
        GgufWriter old = writer().tensor(good);
        old.version = 1;
        check(old, "is GGUF of version 1: expected 2 or 3");
        old.version = Integer.reverseBytes(3);
        check(old, "is GGUF of version 50331648, big-endian: expected");
        check(writer().text("flag", "x").tensor(good), "has the key 'flag' twice");
        check(
                writer().number("general.alignment", 48).tensor(good),
                "has general.alignment 48 of type 4: expected a power of two");
        check(writer().key("x", 13).tensor(good), "has a value of type 13: expected 0 to 12");
        check(
                writer().key("x", 8).value(GgufWriter.twoWords(-1)).tensor(good),
                "has 18446744073709551615 as length of a text: expected at most");
        check(
                writer().tensor(new Tensor("w", new long[] {1, 1, 1, 1, 1}, 0, 0, new byte[32])),
                "describes tensor 'w' with 5 dimensions: expected at most 4");
        check(
                writer().tensor(new Tensor("w", new long[] {0, 4}, 0, 0, new byte[32])),
                "describes tensor 'w' with a dimension of 0: expected 1 or more");
        check(
                writer().tensor(new Tensor("n".repeat(65), new long[] {1}, 0, 0, new byte[32])),
                "has a name of a tensor of 65 bytes: expected 1 to 64");
        GgufWriter nested = writer().key("x", 9);
        for (int i = 0; i < 20; i++) {
            nested.value(GgufWriter.word(9)).value(GgufWriter.twoWords(1));
        }
        check(nested.tensor(good), "has arrays in arrays, more than 8 deep");
        Files.write(path(), new byte[100]);
        assertRefused(path(), () -> locate("w"), "is not a GGUF file");
        byte[] whole = writer().tensor(good).bytes();
        for (int length = 0; length < whole.length; length += length < 300 ? 1 : 997) {
            Files.write(path(), Arrays.copyOf(whole, length));
            assertRefused(path(), () -> locate("w"), "");
        }
    }

    private void check(GgufWriter writer, String refusal) throws IOException {
        writer.write(path());
        assertRefused(path(), () -> locate("w"), refusal);
    }
}
