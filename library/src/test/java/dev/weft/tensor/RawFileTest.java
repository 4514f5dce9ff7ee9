package dev.weft.tensor;

import static dev.weft.tensor.Refusals.assertRefused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class RawFileTest {

    private final Arena arena = Arena.ofAuto();

    @TempDir private Path folder;

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP32", "FP16", "BF16"})
    void elementsComeBackBitForBit(DType dtype) throws IOException {
        Matrix matrix = Matrix.allocate(arena, dtype, 13, 7);
        new NormalData(1, 1).fill(matrix);
        Path path = folder.resolve("a.bin");
        write(path, matrix);
        assertEquals(13 * 7 * dtype.bytes(), Files.size(path));
        assertTrue(read(path, dtype, 13, 7).bitwiseEquals(matrix));
    }

    @Test
    void theBytesAreLittleEndianElementsAlone() throws IOException {
        Path path = folder.resolve("a.bin");
        write(path, Matrix.copyOf(arena, new float[][] {{1}, {-2}}));
        assertArrayEquals(
                new byte[] {0, 0, (byte) 0x80, 0x3F, 0, 0, 0, (byte) 0xC0},
                Files.readAllBytes(path));
    }

    @Test
    void emptyMatricesAreEmptyFiles() throws IOException {
        Path path = folder.resolve("empty.bin");
        write(path, Matrix.allocate(arena, DType.FP16, 0, 5));
        assertEquals(0, Files.size(path));
        assertEquals("[0, 5] fp16", read(path, DType.FP16, 0, 5).describe());
    }

    @Test
    void anotherSizeIsRefusedWithBothNumbers() throws IOException {
        Path path = Files.write(folder.resolve("a.bin"), new byte[22]);
        assertRefused(
                path,
                () -> read(path, DType.FP16, 3, 4),
                "22 bytes",
                "expected 24 for [3, 4] fp16");
        assertRefused(path, () -> read(path, DType.FP16, -3, 4), "-3 x 4");
        assertRefused(path, () -> read(path, DType.FP16, 1L << 62, 2), "64-bit");
    }

    @Test
    void filesBeyondTwoGibibytesAreMapped() throws IOException {
        Path path = folder.resolve("large.bin");
        long rows = (3L << 30) / 1024;
        try (FileChannel channel =
                FileChannel.open(
                        path,
                        StandardOpenOption.CREATE_NEW,
                        StandardOpenOption.SPARSE,
                        StandardOpenOption.WRITE)) {
            byte[] one = {0, 0, (byte) 0x80, 0x3F};
            channel.write(ByteBuffer.wrap(one), rows * 1024 - 4);
        }
        Matrix matrix = read(path, DType.FP32, rows, 256);
        assertEquals(1f, matrix.get(rows - 1, 255));
        assertEquals(0f, matrix.get(rows - 1, 254));
    }

    private Matrix read(Path path, DType dtype, long rows, long cols) throws IOException {
        return MatrixFiles.read(path.toString(), dtype, rows, cols, arena);
    }

    private static void write(Path path, Matrix matrix) throws IOException {
        MatrixFiles.write(path.toString(), matrix);
    }
}
