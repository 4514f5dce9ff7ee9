package dev.weft.compat;

import static dev.weft.compat.FgccTest.TWO;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.compat.Fgcc.Path;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.transport.Ranks;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Replica groups of FGCC: who gathers with whom, and who reads whose result. */
class FgccGroupsTest {

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void replicaGroupsOfConsecutiveRanksGatherByThemselves(boolean hbm) {
        int ranks = 4;
        int groups = 3;
        Arena arena = Arena.ofAuto();
        List<FgccProblem> problems = new ArrayList<>();
        for (int g = 0; g < groups; g++) {
            problems.add(
                    FgccProblem.create(arena, ranks, 12, 33, 21, DType.BF16, DType.BF16, 100 + g));
        }
        Ranks.run(
                ranks * groups,
                fabric -> {
                    int member = fabric.rank() % ranks;
                    FgccProblem problem = problems.get(fabric.rank() / ranks);
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    fabric,
                                    12,
                                    33,
                                    DType.BF16,
                                    problem.rhs(member),
                                    ranks,
                                    groups,
                                    hbm,
                                    TWO)) {
                        for (int call = 0; call < 5; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(member));
                            problem.assertBitwise(result.product(), member);
                        }
                    }
                });
    }

    /** Strided and of unlike length: each list's order is that of its rows and columns. */
    @Test
    void anyListsOfRanksGatherByThemselves() {
        ReplicaGroups groups = ReplicaGroups.parse("0,2,5,4/3,1");
        Arena arena = Arena.ofAuto();
        List<FgccProblem> problems =
                List.of(
                        FgccProblem.create(arena, 4, 12, 33, 21, DType.BF16, DType.BF16, 100),
                        FgccProblem.create(arena, 2, 12, 33, 21, DType.BF16, DType.BF16, 101));
        Ranks.run(
                6,
                fabric -> {
                    FgccProblem problem = problems.get(groups.groupOf(fabric.rank()));
                    int member = groups.with(fabric.rank()).indexOf(fabric.rank());
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    Place.HOST,
                                    fabric,
                                    12,
                                    33,
                                    DType.BF16,
                                    problem.rhs(member),
                                    groups,
                                    false,
                                    TWO)) {
                        for (int call = 0; call < 3; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(member));
                            problem.assertBitwise(result.product(), member);
                        }
                    }
                });
    }

    /** They make the same calls and get a product without rows. */
    @Test
    void ranksInNoGroupTakeNoPart() {
        ReplicaGroups groups = ReplicaGroups.parse("3,1");
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 2, 12, 33, 21, DType.BF16, DType.BF16, 100);
        Ranks.run(
                4,
                fabric -> {
                    boolean sitsOut = groups.groupOf(fabric.rank()) < 0;
                    int member = groups.with(fabric.rank()).indexOf(fabric.rank());
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    Place.HOST,
                                    fabric,
                                    12,
                                    33,
                                    DType.BF16,
                                    problem.rhs(member),
                                    groups,
                                    false,
                                    TWO.withSharedResult())) {
                        for (int call = 0; call < 3; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(member));
                            if (sitsOut) {
                                assertEquals(0, result.product().rows());
                            } else {
                                problem.assertBitwise(result.product(), member);
                            }
                        }
                    }
                });
    }

    @Test
    void ranksThatWantDifferentGroupsAreNamed() {
        Arena arena = Arena.ofAuto();
        Matrix lhs = Matrix.allocate(arena, DType.BF16, 8, 4);
        Matrix rhs = Matrix.allocate(arena, DType.BF16, 4, 4);
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        Ranks.run(
                                                4,
                                                fabric -> {
                                                    int groups = fabric.rank() == 3 ? 2 : 1;
                                                    Fgcc.allgatherComputeMatmul(
                                                            fabric,
                                                            lhs,
                                                            rhs,
                                                            4 / groups,
                                                            groups,
                                                            false);
                                                }))
                        .getMessage();
        assertTrue(message.startsWith("num_groups is "), message);
        assertTrue(message.contains("rank 3"), message);
    }

    /** As in the source's shared HBM; no barrier lies between a call and the reading of it. */
    @ParameterizedTest
    @EnumSource(Path.class)
    void theResultIsReadableByTheGroupsOtherRanks(Path path) {
        int ranks = 4;
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(arena, ranks, 16, 24, 22, DType.BF16, DType.BF16, 6);
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (Fgcc<Matrix> prepared =
                            Fgcc.prepare(
                                    fabric,
                                    16,
                                    24,
                                    DType.BF16,
                                    problem.rhs(rank),
                                    ranks,
                                    1,
                                    path == Path.HBM,
                                    TWO.withSharedResult())) {
                        for (int call = 0; call < 5; call++) {
                            FgccResult<Matrix> result = prepared.call(problem.lhs(rank));
                            for (int peer = 0; peer < ranks; peer++) {
                                problem.assertBitwise(result.peer(peer), peer);
                            }
                        }
                    }
                });
    }

    /** As in the source, where a result is in memory that all ranks share. */
    @Test
    void theResultOfASingleCallIsReadableByTheGroupsOtherRanks() {
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 2, 5, 7, 9, DType.FP32, DType.BF16, 8);
        Ranks.run(
                4,
                fabric -> {
                    int member = fabric.rank() % 2;
                    Matrix lhs = problem.lhs(member);
                    Matrix rhs = problem.rhs(member);
                    try (FgccResult<Matrix> result =
                            Fgcc.allgatherComputeMatmul(fabric, lhs, rhs, 2, 2)) {
                        assertEquals(Path.SBUF, result.path());
                        problem.assertBitwise(result.product(), member);
                        for (int peer = 0; peer < 2; peer++) {
                            problem.assertBitwise(result.peer(peer), peer);
                        }
                        fabric.barrier();
                    }
                });
    }
}
