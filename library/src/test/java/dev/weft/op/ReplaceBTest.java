package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Another B for an operator that is prepared. */
class ReplaceBTest {

    private static final Shards SHARDS = Shards.of(20, 0, 13);
    private static final int RANKS = SHARDS.ranks();

    private final Arena arena = Arena.ofAuto();

    private Problem problem(long seed) {
        return Problem.create(arena, SHARDS, 70, 37, DType.FP32, seed);
    }

    @ParameterizedTest
    @CsvSource({
        "GATHER, direct",
        "GATHER, ring",
        "SCATTER, direct",
        "SCATTER, chain",
        "ALL, direct",
        "ALL, auto"
    })
    void callsMultiplyByTheNewOne(OperatorKind kind, String algorithm) {
        Problem[] problems = {problem(1), problem(2), problem(3)};
        Ranks.run(
                RANKS,
                fabric -> {
                    int rank = fabric.rank();
                    try (Operator<Matrix> op = kind.on(fabric, problems[0], algorithm).prepare()) {
                        for (Problem problem : problems) {
                            op.replaceB(0, kind.side(problem, rank));
                            for (int call = 0; call < 3; call++) {
                                Matrix c = op.call(kind.input(problem, rank)).product();
                                assertTrue(kind.expected(problem, rank).bitwiseEquals(c));
                            }
                        }
                    }
                });
    }

    /** Transposed, of two right-hand sides the second, another one on each rank. */
    @Test
    void oneOfSeveralIsReplaced() {
        Problem problem = problem(1);
        Ranks.run(
                RANKS,
                fabric -> {
                    Matrix first = Matrix.allocate(arena, DType.FP32, 5, 70);
                    Matrix second = Matrix.allocate(arena, DType.FP32, 5, 70);
                    new NormalData(7, fabric.rank()).fill(first);
                    new NormalData(8, fabric.rank()).fill(second);
                    try (AllGatherMatmul op =
                                    problem.on(fabric)
                                            .b(first, true)
                                            .algorithm(Algorithm.MESH_PUSH)
                                            .prepare();
                            AllGatherMatmul anew =
                                    problem.on(fabric)
                                            .b(second, true)
                                            .algorithm(Algorithm.MESH_PUSH)
                                            .prepare()) {
                        Matrix shard = problem.shard(fabric.rank());
                        op.call(shard);
                        op.replaceB(1, second);
                        Result<Matrix> result = op.call(shard);
                        assertTrue(problem.unfused().bitwiseEquals(result.product(0)));
                        Matrix expected = anew.call(shard).product(1);
                        assertTrue(expected.bitwiseEquals(result.product(1)));
                    }
                });
    }

    @Test
    void whatCannotTakeItsPlaceIsRefusedAndNothingChanges() {
        Problem problem = problem(1);
        Matrix narrow = Matrix.allocate(arena, DType.FP32, 70, 36);
        Matrix half = Matrix.allocate(arena, DType.FP16, 70, 37);
        Ranks.run(
                RANKS,
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric).algorithm(Algorithm.DIRECT).prepare()) {
                        assertEquals(
                                "B number 0 is to be replaced by [70, 36] fp32: expected [70, 37]"
                                        + " fp32, as it was given",
                                refused(IllegalArgumentException.class, op, narrow));
                        refused(IllegalArgumentException.class, op, half);
                        Matrix own = Matrix.allocate(arena, DType.FP32, 70, 37);
                        own.set(0, 0, fabric.rank());
                        assertTrue(
                                refused(IllegalArgumentException.class, op, own)
                                        .contains("the B that they share"));
                        boolean first = fabric.rank() == 0;
                        assertEquals(
                                first,
                                refused(
                                                IllegalArgumentException.class,
                                                op,
                                                first ? narrow : problem.b())
                                        .contains("[70, 36]"));
                        var pending = op.start(problem.shard(fabric.rank()));
                        refused(IllegalStateException.class, op, problem.b());
                        assertTrue(problem.unfused().bitwiseEquals(pending.await().product()));
                    }
                });
    }

    @Test
    void aBWithScalesCannotBeReplaced() {
        Problem problem = problem(1);
        Ranks.run(
                1,
                fabric -> {
                    try (AllGatherMatmul op =
                            AllGatherMatmul.on(fabric)
                                    .scaledA(Shards.of(33), DType.E4M3, Scaling.TENSOR)
                                    .b(
                                            ScaledMatrix.ofB(
                                                    arena,
                                                    problem.b(),
                                                    false,
                                                    DType.E4M3,
                                                    Scaling.TENSOR),
                                            false)
                                    .algorithm(Algorithm.SEQUENTIAL)
                                    .prepare()) {
                        refused(UnsupportedOperationException.class, op, problem.b());
                    }
                });
    }

    private static String refused(
            Class<? extends RuntimeException> kind, Operator<Matrix> op, Matrix b) {
        return assertThrows(kind, () -> op.replaceB(0, b)).getMessage();
    }
}
