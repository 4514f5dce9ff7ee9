package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.compat.Fgcc.Path;
import dev.weft.fabric.transport.Ranks;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Products of FGCC of any size, the choice of their path, and what is refused. */
class FgccTest {

    /** Two programs on each rank. */
    static final FgccConfig TWO = FgccConfig.DEFAULT.withLnc(2);

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
                        try (FgccResult<Matrix> result = problem.call(fabric, force, config)) {
                            problem.assertBitwise(result.product(), fabric.rank());
                            problem.assertClose(result.product(), fabric.rank());
                        }
                    });
        }
    }

    @Test
    void sixtyFourRanksInFourChannels() {
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 64, 16, 40, 128, DType.BF16, DType.BF16, 5);
        Ranks.run(
                64,
                fabric -> {
                    int rank = fabric.rank();
                    try (FgccResult<Matrix> result = problem.call(fabric, false, TWO)) {
                        assertArrayEquals(new long[] {64, 2, 4, 2, 2}, result.shape());
                        problem.assertBitwise(result.product(), rank);
                        problem.assertClose(result.product(), rank);
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
                    try (FgccResult<Matrix> result = problem.call(fabric, false, config)) {
                        assertEquals(Path.HBM, result.path());
                        problem.assertBitwise(result.product(), fabric.rank());
                    }
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
}
