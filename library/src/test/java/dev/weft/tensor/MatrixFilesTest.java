package dev.weft.tensor;

import static dev.weft.tensor.MatrixFiles.ANY;
import static dev.weft.tensor.Refusals.assertRefused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.MatrixFiles.Located;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MatrixFilesTest {

    private final Arena arena = Arena.ofAuto();

    @TempDir private Path folder;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a.npy",
                "m.safetensors:w",
                "m.safetensors:a:b/c.npy.x",
                "m.v1.safetensors:",
                "a.bin",
                "noSuffix",
                "with space.npy"
            })
    void theSuffixDecidesTheFormat(String name) throws IOException {
        Matrix matrix = Matrix.allocate(arena, DType.BF16, 4, 6);
        new NormalData(6, 6).fill(matrix);
        String spec = folder + "/" + name;
        MatrixFiles.write(spec, matrix);
        Matrix back = MatrixFiles.read(spec, DType.BF16, 4, 6, arena);
        assertTrue(back.bitwiseEquals(matrix));
        if (name.contains(".npy") || name.contains(":")) {
            assertTrue(MatrixFiles.read(spec, null, ANY, ANY, arena).bitwiseEquals(matrix));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"a.npy", "m.safetensors:w"})
    void anotherTypeOrShapeIsRefusedWithBoth(String name) throws IOException {
        String spec = folder + "/" + name;
        MatrixFiles.write(spec, Matrix.allocate(arena, DType.FP16, 4, 6));
        assertEquals(4, MatrixFiles.read(spec, DType.FP16, ANY, 6, arena).rows());
        assertRefused(
                spec,
                () -> MatrixFiles.read(spec, DType.FP32, ANY, 6, arena),
                "holds [4, 6] fp16: expected [any, 6] fp32");
        assertRefused(
                spec,
                () -> MatrixFiles.read(spec, null, 5, ANY, arena),
                "holds [4, 6] fp16: expected [5, any] of any type");
        assertRefused(
                spec,
                () -> MatrixFiles.read(spec, DType.FP16, 4, 0, arena),
                "holds [4, 6] fp16: expected [4, 0] fp16");
        assertRefused(spec, () -> MatrixFiles.read(spec, null, -2, ANY, arena), "-2 x -1");
    }

    @Test
    void aRawFileNeedsItsTypeAndShapeFromTheCaller() throws IOException {
        String spec = folder + "/a.bin";
        MatrixFiles.write(spec, Matrix.allocate(arena, DType.FP16, 4, 6));
        String part = "give dtype, rows and columns";
        assertRefused(spec, () -> MatrixFiles.read(spec, null, 4, 6, arena), part);
        assertRefused(spec, () -> MatrixFiles.read(spec, DType.FP16, ANY, 6, arena), part);
        assertRefused(spec, () -> MatrixFiles.read(spec, DType.FP16, 4, ANY, arena), part);
        assertRefused(
                spec,
                () -> MatrixFiles.read(spec, DType.FP16, 4, 7, arena),
                "48 bytes",
                "expected 56 for [4, 7] fp16");
    }

    @Test
    void safetensorsWithoutATensorAreRefused() throws IOException {
        String spec = folder + "/m.safetensors";
        assertRefused(spec, () -> MatrixFiles.read(spec, DType.FP32, 1, 1, arena), spec + ":NAME");
        assertRefused(
                spec,
                () -> MatrixFiles.write(spec, Matrix.allocate(arena, DType.FP32, 1, 1)),
                spec + ":NAME");
    }

    @ParameterizedTest
    @ValueSource(strings = {"none.npy", "none.safetensors:w", "none.bin", "no/such/folder/a.npy"})
    void aMissingFileIsNamedAsWritten(String name) {
        String spec = folder + "/" + name;
        assertRefused(
                spec.replace(":w", ""),
                () -> MatrixFiles.read(spec, DType.FP32, 1, 1, arena),
                "no such file");
    }

    @Test
    void whatIsNoRegularFileIsRefused() throws IOException {
        String spec = Files.createDirectory(folder.resolve("d.npy")).toString();
        assertRefused(spec, () -> MatrixFiles.read(spec, null, ANY, ANY, arena), "a folder");
        assertThrows(
                IllegalArgumentException.class,
                () -> MatrixFiles.read("a\0.npy", null, ANY, ANY, arena));
        assertRefused("", () -> MatrixFiles.read("", DType.FP32, 1, 1, arena), "a folder");
    }

    @ParameterizedTest
    @ValueSource(strings = {"m.npy", "m.safetensors:t", "m.raw"})
    void whatIsReadStaysWhenTheFileIsCutShort(String name) throws IOException {
        String spec = folder.resolve(name).toString();
        Matrix matrix = Matrix.allocate(arena, DType.FP16, 600, 1000);
        new NormalData(1, 1).fill(matrix);
        MatrixFiles.write(spec, matrix);
        Located file = MatrixFiles.locate(spec, DType.FP16, 600, 1000);
        assertEquals("[600, 1000] fp16", file.describe());
        Matrix all = file.read(arena);
        Matrix block = Matrix.allocate(arena, DType.FP16, 590, 7);
        file.read(9, 993, block);
        Matrix rows = Matrix.allocate(arena, DType.FP16, 3, 1000);
        file.read(597, 0, rows);
        long before = Files.size(file.path());
        try (FileChannel channel = FileChannel.open(file.path(), StandardOpenOption.WRITE)) {
            channel.truncate(5000);
        }
        assertTrue(all.bitwiseEquals(matrix));
        assertTrue(block.bitwiseEquals(matrix.block(9, 590, 993, 7)));
        assertTrue(rows.bitwiseEquals(matrix.rows(597, 3)));
        IOException e = assertThrows(IOException.class, () -> file.read(0, 0, rows));
        assertEquals(
                file.path() + ": has changed while it was in use: 5000 bytes, expected " + before,
                e.getMessage());
        Files.delete(file.path());
        assertThrows(IOException.class, () -> file.read(arena));
    }

    @Test
    void onlyWhatIsThereCanBeRead() throws IOException {
        String spec = folder.resolve("a.npy").toString();
        MatrixFiles.write(spec, Matrix.allocate(arena, DType.FP16, 4, 6));
        Located file = MatrixFiles.locate(spec, null, ANY, ANY);
        Matrix part = Matrix.allocate(arena, DType.FP16, 2, 6);
        assertThrows(IllegalArgumentException.class, () -> file.read(3, 0, part));
        assertThrows(IllegalArgumentException.class, () -> file.read(0, 1, part));
        assertThrows(IllegalArgumentException.class, () -> file.read(-1, 0, part));
        Matrix other = Matrix.allocate(arena, DType.FP32, 2, 6);
        assertThrows(IllegalArgumentException.class, () -> file.read(0, 0, other));
    }
}
