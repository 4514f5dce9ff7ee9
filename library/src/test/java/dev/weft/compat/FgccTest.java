package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.compat.Fgcc.Path;
import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FgccTest {

    private static final FgccConfig TWO = FgccConfig.DEFAULT.withLnc(2);

    /** The source drops what does not fill a tile; here K, N and loc are off every grid. */
    @Test
    void sizesOffTheTileGridAreComputedRight() {
        Random random = new Random(11);
        for (int round = 0; round < 12; round++) {
            long seed = random.nextLong();
            Random sizes = new Random(seed);
            int ranks = 2 * sizes.nextInt(1, 5);
            int lnc = sizes.nextInt(1, 3);
            long m = (long) lnc * FgccLayout.channels(lnc, ranks) * sizes.nextInt(1, 40);
            FgccConfig config =
                    FgccConfig.DEFAULT.withLnc(lnc).withOnChipBytes(sizes.nextInt(1 << 18));
            DType aType = DType.values()[sizes.nextInt(3)];
            DType bType = DType.values()[sizes.nextInt(3)];
            boolean force = sizes.nextBoolean();
            Arena arena = Arena.ofAuto();
            FgccProblem problem =
                    FgccProblem.create(
                            arena,
                            ranks,
                            m,
                            sizes.nextInt(1, 200),
                            sizes.nextInt(ranks, 700),
                            aType,
                            bType,
                            seed);
            Ranks.run(
                    ranks,
                    fabric -> {
                        FgccResult result = problem.call(fabric, force, config);
                        problem.assertBitwise(result.product(), fabric.rank());
                        problem.assertClose(result.product(), fabric.rank());
                    });
        }
    }

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
                    try (Fgcc prepared =
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
                            FgccResult result = prepared.call(problem.lhs(member));
                            problem.assertBitwise(result.product(), member);
                        }
                    }
                });
    }

    @Test
    void sixtyFourRanksInFourChannels() {
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 64, 16, 40, 128, DType.BF16, DType.BF16, 5);
        Ranks.run(
                64,
                fabric -> {
                    int rank = fabric.rank();
                    FgccResult result = problem.call(fabric, false, TWO);
                    assertEquals(4, result.layout().channels());
                    assertEquals(2, result.layout().loc());
                    problem.assertBitwise(result.product(), rank);
                    problem.assertClose(result.product(), rank);
                });
    }

    /** Per rank two places for its own shard and two ring buffers: 4 m K, whatever M is. */
    @ParameterizedTest
    @CsvSource({"4, false", "16, false", "32, false", "16, true"})
    void noGatheredAIsStoredAnywhere(int ranks, boolean hbm) {
        long m = 64;
        long k = 512;
        long shardBytes = Matrix.contiguousBytes(DType.BF16, m, k);
        Arena arena = Arena.ofAuto();
        Matrix rhs = Matrix.allocate(arena, DType.BF16, k, 8);
        Matrix lhs = Matrix.allocate(arena, DType.BF16, m, k);
        List<Long> reachable =
                Ranks.call(
                        ranks,
                        fabric -> {
                            try (Fgcc prepared =
                                    Fgcc.prepare(
                                            fabric, m, k, DType.BF16, rhs, ranks, 1, hbm, TWO)) {
                                assertEquals(hbm ? Path.HBM : Path.SBUF, prepared.call(lhs).path());
                                return prepared.reachableBytes();
                            }
                        });
        for (long bytes : reachable) {
            assertTrue(bytes >= 4 * shardBytes, "got " + bytes);
            assertTrue(bytes <= 4 * shardBytes + (32 << 10), "got " + bytes);
        }
    }

    /** R - 1 permutes of L x C slices to the successor; own rows first, then rank - 1, - 2, ... */
    @Test
    void theStepsAreTheSources() {
        int ranks = 4;
        Arena arena = Arena.ofAuto();
        Matrix rhs = Matrix.allocate(arena, DType.BF16, 8, 8);
        Ranks.run(
                ranks,
                fabric -> {
                    try (Fgcc prepared =
                            Fgcc.prepare(fabric, 16, 8, DType.BF16, rhs, ranks, 1, false, TWO)) {
                        List<Transfer> permutes = FgccProblem.transfers(prepared.plan());
                        assertEquals((ranks - 1) * 2 * 2, permutes.size());
                        for (int i = 0; i < permutes.size(); i++) {
                            assertEquals((fabric.rank() + 1) % ranks, permutes.get(i).to());
                            assertEquals(
                                    Math.floorMod(fabric.rank() - i / 4, ranks),
                                    permutes.get(i).source());
                        }
                        List<Integer> sources = FgccProblem.sources(prepared.plan());
                        for (int step = 0; step < ranks; step++) {
                            assertEquals(
                                    Math.floorMod(fabric.rank() - step, ranks), sources.get(step));
                        }
                    }
                });
    }

    /** On the edge of the rule a rank with one column more would choose another path. */
    @Test
    void ranksWithDifferentNumbersOfColumnsAgreeOnOnePath() {
        int ranks = 2;
        FgccConfig config = new FgccConfig(1, 2 * 10 * 32 * 2 + 2 * 32 * 4 * 2);
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(arena, ranks, 4, 32, 21, DType.BF16, DType.BF16, 2);
        assertEquals(Path.SBUF, Path.choose(config, 1, 4, 32, 10, DType.BF16, DType.BF16, false));
        assertEquals(Path.HBM, Path.choose(config, 1, 4, 32, 11, DType.BF16, DType.BF16, false));
        Ranks.run(
                ranks,
                fabric -> {
                    FgccResult result = problem.call(fabric, false, config);
                    assertEquals(Path.HBM, result.path());
                    problem.assertBitwise(result.product(), fabric.rank());
                });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // world | m | lhs K | rhs K | tp_degree | num_groups | message
                "4 | 8 | 16 | 15 | 4 | 1 | lhs [8, 16] bf16 and rhs [15, 6] bf16 differ in K:"
                        + " 16 and 15",
                "3 | 8 | 16 | 16 | 3 | 1 | tp_degree 3: expected an even number",
                "1 | 8 | 16 | 16 | 1 | 1 | tp_degree 1: expected an even number",
                "2 | 8 | 16 | 16 | 0 | 1 | tp_degree 0: expected an even number",
                "4 | 6 | 16 | 16 | 4 | 1 | M = 24 (m = 6 on each of R = 4 ranks) is not divisible"
                        + " by R*L*C = 4*2*2 = 16: expected m to be a multiple of 4",
                "4 | 8 | 16 | 16 | 4 | 2 | tp_degree 4 times num_groups 2 is 8: expected the 4"
                        + " ranks of the world",
                "4 | 8 | 16 | 16 | 4 | 0 | tp_degree 4 times num_groups 0 is 0: expected the 4"
                        + " ranks of the world"
            })
    void whatTheSourceRefusesIsRefusedWithTheNumbers(
            int size, long m, long k, long rhsRows, int tpDegree, int numGroups, String message) {
        Arena arena = Arena.ofAuto();
        Matrix lhs = Matrix.allocate(arena, DType.BF16, m, k);
        Matrix rhs = Matrix.allocate(arena, DType.BF16, rhsRows, 6);
        IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                Ranks.run(
                                        size,
                                        fabric ->
                                                Fgcc.allgatherComputeMatmul(
                                                        fabric, lhs, rhs, tpDegree, numGroups,
                                                        false, TWO)));
        assertEquals(message, refusal.getMessage());
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

    @Test
    void theResultOfAOneShotCallOutlivesIt() {
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 2, 5, 7, 9, DType.FP32, DType.BF16, 8);
        List<FgccResult> results =
                Ranks.call(
                        2,
                        fabric ->
                                Fgcc.allgatherComputeMatmul(
                                        fabric,
                                        problem.lhs(fabric.rank()),
                                        problem.rhs(fabric.rank()),
                                        2,
                                        1,
                                        false));
        for (int rank = 0; rank < 2; rank++) {
            assertEquals(DType.FP32, results.get(rank).product().dtype());
            problem.assertBitwise(results.get(rank).product(), rank);
        }
    }
}
