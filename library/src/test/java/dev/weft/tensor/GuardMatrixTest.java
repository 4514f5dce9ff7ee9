package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.ffi.GuardedMemory;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Copies, comparisons, made-up data and files of matrices that end where nobody may read on. */
class GuardMatrixTest {

    private static final long[] SIZES = {1, 2, 3, 7, 8, 9, 31, 33, 64, 65, 129};
    private static final long[] GAPS = {0, 3};

    @BeforeEach
    void assumeGuards() {
        assumeTrue(
                GuardedMemory.unavailable().isEmpty(),
                () -> GuardedMemory.unavailable().orElseThrow());
    }

    private interface Check {
        void accept(GuardedMemory memory, DType dtype, long rows, long cols, long gap)
                throws IOException;
    }

    private static void forEachShape(long[] sizes, Check check) throws IOException {
        for (GuardedMemory.Flush flush : GuardedMemory.Flush.values()) {
            for (DType dtype : DType.UNSCALED) {
                for (long rows : sizes) {
                    for (long cols : sizes) {
                        for (long gap : GAPS) {
                            try (GuardedMemory memory = new GuardedMemory(flush)) {
                                check.accept(memory, dtype, rows, cols, gap);
                            }
                        }
                    }
                }
            }
        }
    }

    /** Its last element is the last that may be touched. */
    private static Matrix matrix(Arena arena, DType dtype, long rows, long cols, long gap) {
        long bytes = ((rows - 1) * (cols + gap) + cols) * dtype.bytes();
        return new Matrix(arena.allocate(bytes), dtype, rows, cols, cols + gap);
    }

    private static Matrix filled(Arena arena, DType dtype, long rows, long cols, long gap) {
        Matrix matrix = matrix(arena, dtype, rows, cols, gap);
        new NormalData(7, 1).fill(matrix);
        return matrix;
    }

    @Test
    void copiesAndComparisons() throws IOException {
        forEachShape(
                SIZES,
                (memory, dtype, rows, cols, gap) -> {
                    Matrix source = filled(memory, dtype, rows, cols, gap);
                    for (long targetGap : GAPS) {
                        Matrix copy = matrix(memory, dtype, rows, cols, targetGap);
                        copy.copyFrom(source);
                        assertTrue(copy.bitwiseEquals(source), copy::describe);
                        Matrix block = matrix(memory, dtype, rows, cols, targetGap);
                        block.copyBlock(source, 0, 0, 0, 0, rows, cols);
                        assertEquals(-1, block.firstDifferentRow(source), block::describe);
                        block.set(rows - 1, cols - 1, source.get(rows - 1, cols - 1) + 1);
                        assertEquals(rows - 1, block.firstDifferentRow(source));
                        Matrix last = copy.block(rows - 1, 1, cols - 1, 1);
                        assertEquals(source.get(rows - 1, cols - 1), last.get(0, 0));
                    }
                });
    }

    @Test
    void filesAreWrittenFromTheEdgeAndReadToIt(@TempDir Path folder) throws IOException {
        String[] specs = {"a.npy", "a.safetensors:a", "a.raw"};
        forEachShape(
                new long[] {1, 33},
                (memory, dtype, rows, cols, gap) -> {
                    Matrix source = filled(memory, dtype, rows, cols, gap);
                    for (String name : specs) {
                        String spec = folder.resolve(name).toString();
                        MatrixFiles.write(spec, source);
                        try (Arena arena = Arena.ofConfined()) {
                            Matrix back = MatrixFiles.read(spec, dtype, rows, cols, arena);
                            assertTrue(back.bitwiseEquals(source), name);
                            Matrix copy = matrix(memory, dtype, rows, cols, gap);
                            copy.copyFrom(back);
                            assertTrue(copy.bitwiseEquals(source), name);
                        }
                    }
                });
    }
}
