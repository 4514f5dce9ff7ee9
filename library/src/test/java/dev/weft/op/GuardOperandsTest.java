package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.World;
import dev.weft.ffi.GuardedMemory;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Callers' matrices are read to their last element, and no further. */
class GuardOperandsTest {

    private static final long[] SIZES = {1, 2, 3, 7, 8, 9, 31, 33, 64, 65, 129};

    @BeforeEach
    void assumeGuards() {
        assumeTrue(
                GuardedMemory.unavailable().isEmpty(),
                () -> GuardedMemory.unavailable().orElseThrow());
    }

    /** Its last element is the last that may be touched. */
    private static Matrix filled(Arena arena, DType dtype, long rows, long cols, long gap) {
        long bytes = ((rows - 1) * (cols + gap) + cols) * dtype.bytes();
        Matrix matrix = new Matrix(arena.allocate(bytes), dtype, rows, cols, cols + gap);
        new NormalData(3, 4).fill(matrix);
        return matrix;
    }

    @Test
    void digests() {
        for (DType dtype : DType.UNSCALED) {
            for (long rows : SIZES) {
                for (long cols : SIZES) {
                    try (Arena arena = Arena.ofConfined();
                            Arena guarded = new GuardedMemory(GuardedMemory.Flush.WITH_END)) {
                        Matrix plain = filled(arena, dtype, rows, cols, 0);
                        Matrix edge = filled(guarded, dtype, rows, cols, cols % 2);
                        assertArrayEquals(MatrixDigest.of(plain), MatrixDigest.of(edge));
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = Algorithm.class, names = "AUTO", mode = EnumSource.Mode.EXCLUDE)
    void wholeCalls(Algorithm algorithm) {
        Shards shards = Shards.of(33, 1);
        for (DType dtype : DType.UNSCALED) {
            try (Arena arena = Arena.ofShared();
                    GuardedMemory guarded = new GuardedMemory(GuardedMemory.Flush.WITH_END);
                    World world = World.threads(2)) {
                Problem problem =
                        Problem.create(arena, shards, 65, 17, dtype, dtype, dtype, false, 9);
                Matrix b = copyAtEdge(guarded, problem.b());
                Matrix[] edges = {
                    copyAtEdge(guarded, problem.shard(0)), copyAtEdge(guarded, problem.shard(1))
                };
                world.run(
                        fabric -> {
                            try (AllGatherMatmul op =
                                    AllGatherMatmul.on(fabric)
                                            .a(shards, dtype)
                                            .b(b)
                                            .output(dtype)
                                            .algorithm(algorithm)
                                            .computeWorkers(1)
                                            .prepare()) {
                                Result<Matrix> result = op.call(edges[fabric.rank()]);
                                assertEquals(
                                        -1,
                                        problem.unfused().firstDifferentRow(result.product()),
                                        () -> algorithm + " with " + dtype);
                            }
                        });
            }
        }
    }

    private static Matrix copyAtEdge(Arena guarded, Matrix source) {
        Matrix copy = filled(guarded, source.dtype(), source.rows(), source.cols(), 5);
        copy.copyFrom(source);
        return copy;
    }
}
