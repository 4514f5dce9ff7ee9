package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Collectives without a product. */
class PlainCollectivesTest {

    private static final int COLS = 37;

    /** A rank's rows; element values tell rank, row and column. */
    private static Matrix rows(Arena arena, DType type, int rank, long rows) {
        Matrix matrix = Matrix.allocate(arena, type, rows, COLS);
        Random random = new Random(rank);
        matrix.fill(random::nextGaussian);
        return matrix;
    }

    private static float sum(Matrix[] all, long row, long col, DType type) {
        float sum = all[0].get(row, col);
        for (int r = 1; r < all.length; r++) {
            sum += all[r].get(row, col);
        }
        try (Arena arena = Arena.ofConfined()) {
            Matrix rounded = Matrix.allocate(arena, type, 1, 1);
            rounded.set(0, 0, sum);
            return rounded.get(0, 0);
        }
    }

    @ParameterizedTest
    @CsvSource({"1, FP32", "2, BF16", "3, FP16", "4, FP32"})
    void sumsAreInRankOrder(int ranks, DType type) {
        for (boolean apart : new boolean[] {false, ranks > 2}) {
            Shards shards = Shards.of(Arrays.copyOf(new long[] {13, 0, 71, 5}, ranks));
            long m = shards.totalRows();
            try (Arena arena = Arena.ofShared()) {
                Matrix[] all = new Matrix[ranks];
                Arrays.setAll(all, r -> rows(arena, type, r, m));
                Ranks.run(
                        ranks,
                        given -> {
                            Hosts hosts = apart ? Hosts.of(1, ranks - 1) : Hosts.one(ranks);
                            Transport fabric = OnHosts.of(Transport.of(given), hosts);
                            int rank = fabric.rank();
                            try (AllReduce reduce = AllReduce.rows(fabric, m, COLS, type);
                                    ReduceScatter scatter =
                                            ReduceScatter.rows(fabric, shards, COLS, type)) {
                                for (int call = 0; call < 3; call++) {
                                    Matrix sums = reduce.call(all[rank]);
                                    Matrix own = scatter.call(all[rank]);
                                    check(sums, 0, m, all, type);
                                    check(own, shards.firstRow(rank), shards.rows(rank), all, type);
                                }
                                Matrix fewer = reduce.call(all[rank].rows(0, m / 2), m / 2);
                                check(fewer, 0, m / 2, all, type);
                            }
                        });
            }
        }
    }

    private static void check(Matrix sums, long first, long rows, Matrix[] all, DType type) {
        assertEquals(rows, sums.rows());
        for (long row = 0; row < rows; row++) {
            for (long col = 0; col < COLS; col++) {
                assertEquals(sum(all, first + row, col, type), sums.get(row, col));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"1, false", "2, false", "4, false", "4, true"})
    void everyRankGetsWhatWasSentToIt(int ranks, boolean apart) {
        long[] most = new long[ranks];
        Arrays.setAll(most, r -> 10L * (r + 1));
        Hosts hosts = apart ? Hosts.of(1, ranks - 1) : Hosts.one(ranks);
        try (Arena arena = Arena.ofShared()) {
            Ranks.run(
                    ranks,
                    given -> {
                        Transport fabric = OnHosts.of(Transport.of(given), hosts);
                        int rank = fabric.rank();
                        try (AllToAll all =
                                AllToAll.rows(fabric, Shards.of(most), COLS, DType.FP32)) {
                            for (int call = 0; call < 6; call++) {
                                Shards to = to(call, rank, most);
                                Matrix sent = rows(arena, DType.FP32, rank, to.totalRows());
                                all.call(sent, to);
                                for (int source = 0; source < ranks; source++) {
                                    Shards theirs = to(call, source, most);
                                    Matrix expected =
                                            rows(arena, DType.FP32, source, theirs.totalRows())
                                                    .rows(theirs.firstRow(rank), theirs.rows(rank));
                                    assertTrue(all.from(source).bitwiseEquals(expected));
                                }
                            }
                        }
                    });
        }
    }

    /** What a rank sends to each in a call; sometimes nothing. */
    private static Shards to(int call, int rank, long[] most) {
        Random random = new Random(call * 31L + rank);
        long[] to = new long[most.length];
        long left = random.nextInt(4) == 0 ? 0 : most[rank];
        for (int r = 0; r < to.length; r++) {
            to[r] = random.nextLong(left + 1);
            left -= to[r];
        }
        return Shards.of(to);
    }

    @Test
    void rowsThatDoNotAddUpAreRefused() {
        try (Arena arena = Arena.ofShared()) {
            Ranks.run(
                    2,
                    fabric -> {
                        try (AllToAll all =
                                AllToAll.rows(fabric, Shards.of(4, 4), COLS, DType.FP32)) {
                            Matrix sent = rows(arena, DType.FP32, 0, 4);
                            assertThrows(
                                    IllegalArgumentException.class,
                                    () -> all.call(sent, Shards.of(1, 2)));
                            assertThrows(IllegalStateException.class, () -> all.from(0));
                            // Too many on rank 1: all ranks refuse.
                            long more = fabric.rank() == 1 ? 9 : 4;
                            Matrix many = rows(arena, DType.FP32, 0, more);
                            assertThrows(
                                    IllegalArgumentException.class,
                                    () -> all.call(many, Shards.of(more, 0)));
                            all.call(sent, Shards.of(3, 1));
                            assertEquals(fabric.rank() == 0 ? 3 : 1, all.from(1).rows());
                        }
                    });
        }
    }
}
