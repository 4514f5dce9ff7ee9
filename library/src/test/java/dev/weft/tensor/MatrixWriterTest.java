package dev.weft.tensor;

import static dev.weft.tensor.Refusals.assertRefused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MatrixWriterTest {

    private static final byte[] HEADER = {7, 8, 9};

    private final Arena arena = Arena.ofAuto();

    @TempDir private Path folder;

    @Test
    void headerAndMatricesFollowOneAnother() throws IOException {
        Path path = folder.resolve("a");
        Matrix onHeap = Matrix.of(MemorySegment.ofArray(new float[] {1, 2}), DType.FP32, 1, 2);
        Matrix view = Matrix.copyOf(arena, new float[][] {{0, 1}, {2, 3}}).block(0, 2, 1, 1);
        MatrixWriter.write(path, HEADER, List.of(onHeap, view));
        assertArrayEquals(
                new byte[] {
                    7,
                    8,
                    9,
                    0,
                    0,
                    (byte) 0x80,
                    0x3F,
                    0,
                    0,
                    0,
                    0x40,
                    0,
                    0,
                    (byte) 0x80,
                    0x3F,
                    0,
                    0,
                    0x40,
                    0x40
                },
                Files.readAllBytes(path));
        assertEquals(List.of("a"), names());
    }

    @Test
    void viewsLargerThanTheStagingMemoryAreWrittenWhole() throws IOException {
        Matrix whole = Matrix.allocate(arena, DType.FP32, 1100, 700);
        new NormalData(2, 2).fill(whole);
        Matrix view = whole.block(10, 1013, 3, 601);
        Path path = folder.resolve("view");
        MatrixWriter.write(path, new byte[0], List.of(view));
        assertTrue(read(path, DType.FP32, 1013, 601).bitwiseEquals(view));
    }

    @Test
    void aFailedWriteLeavesTheOldFileAndNothingElse() throws IOException {
        Path path = Files.write(folder.resolve("a"), HEADER);
        Matrix lost;
        try (Arena closed = Arena.ofConfined()) {
            lost = Matrix.allocate(closed, DType.FP32, 2, 2);
        }
        Matrix good = Matrix.allocate(arena, DType.FP32, 2, 2);
        assertThrows(
                IllegalStateException.class,
                () -> MatrixWriter.write(path, HEADER, List.of(good, lost)));
        assertArrayEquals(HEADER, Files.readAllBytes(path));
        assertEquals(List.of("a"), names());
    }

    @Test
    void whoHasMappedTheOldFileKeepsIt() throws IOException {
        Path path = folder.resolve("a");
        write(path, Matrix.copyOf(arena, new float[][] {{1, 2}}));
        Matrix old = read(path, DType.FP32, 1, 2);
        write(path, Matrix.copyOf(arena, new float[][] {{3}}));
        assertEquals(2f, old.get(0, 1));
        assertEquals(3f, read(path, DType.FP32, 1, 1).get(0, 0));
    }

    @Test
    void aMatrixMayReplaceTheFileItIsMappedFrom() throws IOException {
        Path path = folder.resolve("a");
        write(path, Matrix.copyOf(arena, new float[][] {{1, 2}, {3, 4}}));
        write(path, read(path, DType.FP32, 2, 2).rows(1, 1));
        assertEquals(3f, read(path, DType.FP32, 1, 2).get(0, 0));
    }

    @Test
    void aLinkStaysALink() throws IOException {
        Path real = Files.write(folder.resolve("real"), HEADER);
        Path link = Files.createSymbolicLink(folder.resolve("link"), real);
        write(link, Matrix.copyOf(arena, new float[][] {{5}}));
        assertTrue(Files.isSymbolicLink(link));
        assertEquals(4, Files.size(real));
    }

    @Test
    void foldersAreNeitherReplacedNorMade() throws IOException {
        Matrix matrix = Matrix.allocate(arena, DType.FP32, 1, 1);
        assertRefused(folder, () -> write(folder, matrix), "not a regular file");
        Path lost = folder.resolve("none").resolve("a.npy");
        assertRefused(
                lost,
                () -> NpyFile.write(lost, matrix),
                folder.resolve("none") + " does not exist");
        assertEquals(List.of(), names());
    }

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }

    private Matrix read(Path path, DType dtype, long rows, long cols) throws IOException {
        return MatrixFiles.read(path.toString(), dtype, rows, cols, arena);
    }

    private static void write(Path path, Matrix matrix) throws IOException {
        MatrixFiles.write(path.toString(), matrix);
    }
}
