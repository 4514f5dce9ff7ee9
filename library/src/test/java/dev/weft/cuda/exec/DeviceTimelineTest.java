package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.cuda.kernel.Origin;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.cuda.kernel.TileTimes.Owners;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What becomes of the times that a kernel wrote; they need no GPU to be made up. */
class DeviceTimelineTest {

    private static final long ZERO = 1_000_000;

    /** Two workers, three tiles of 128 rows: own rows, then two of rank 1, which come in halves. */
    private static final TileSchedule SCHEDULE =
            new TileSchedule(
                    new int[] {
                        0, 128, 0, 256, 0, 0, 0, 0, //
                        128, 128, 0, 256, 1, 0, 0, 2, //
                        256, 128, 0, 256, 1, 128, 2, 1
                    },
                    new int[] {
                        0, 4, 1, 0, 4, //
                        3, 5, 1, 0, 5, //
                        0, 6, 1, 0, 6
                    },
                    new int[0]);

    private static final List<Origin> ORIGINS =
            List.of(
                    new Origin(0, 0),
                    new Origin(0, 1),
                    new Origin(0, 2),
                    new Origin(0, 3),
                    new Origin(1, 0),
                    new Origin(1, 0),
                    new Origin(1, 1));

    private static final Owners OWNERS =
            new Owners(Shards.of(128, 256), false, ORIGINS, new int[] {0, 0, 0, 0, 1, 1, 1});

    private static TileTimes.Times times(long[] busy, long[] waits) {
        for (long[] all : List.of(busy, waits)) {
            for (int i = 0; i < all.length; i++) {
                all[i] += ZERO;
            }
        }
        return new TileTimes.Times(SCHEDULE, 2, busy, waits, ZERO);
    }

    private static List<List<Span>> spans(TileTimes.Times times) {
        List<List<Span>> workers = new ArrayList<>();
        times.addSpans(OWNERS, workers);
        return workers;
    }

    @Test
    void aTileThatWaitsWithinIsCutAtItsWaits() {
        // Tile 1 waits for its first half before, and for its second half within; 2 waits not.
        TileTimes.Times times =
                times(
                        new long[] {0, 100, 0, 300, 100, 200},
                        new long[] {-9, -9, -9, -9, 5, 50, 120, 180, -9, -9, -9, -9});
        assertEquals(
                List.of(
                        List.of(compute(0, 0, 0, 100), compute(1, 128, 100, 200)),
                        List.of(
                                compute(1, 0, 0, 5),
                                waiting(0, 0, 5, 50),
                                compute(1, 0, 50, 120),
                                waiting(0, 0, 120, 180),
                                compute(1, 0, 180, 300))),
                spans(times));
        long[] arrivals = {-1, -1, -1, -1, -1, -1, -1};
        times.addArrivals(arrivals);
        assertArrayEquals(new long[] {-1, -1, -1, -1, 50, 180, -1}, arrivals);
    }

    /** Loads run ahead: what they wait for while the tile before is multiplied costs nothing. */
    @Test
    void onlyAWaitWithNothingToMultiplyIsShown() {
        TileTimes.Times times =
                times(
                        new long[] {0, 100, 0, 90, 100, 220},
                        new long[] {-9, -9, -9, -9, -9, -9, -9, -9, 60, 130, -9, -9});
        assertEquals(
                List.of(
                        compute(0, 0, 0, 100),
                        waiting(1, 128, 100, 130),
                        compute(1, 128, 130, 220)),
                spans(times).get(0));
    }

    /**
     * All rows are in one tile, which is told of as the last shard's, with no more rows than it.
     */
    @Test
    void aTileOfSeveralShardsNamesOnlyRowsOfTheLast() {
        TileSchedule few =
                new TileSchedule(
                        new int[] {0, 24, 0, 256, 0, 0, 0, 1},
                        new int[] {0, 6, 1, 0, 6},
                        new int[0]);
        TileTimes.Times times =
                new TileTimes.Times(few, 2, new long[] {0, 50}, new long[] {10, 30}, 0);
        List<List<Span>> workers = new ArrayList<>();
        times.addSpans(new Owners(Shards.of(16, 8), false, ORIGINS, OWNERS.senders()), workers);
        assertEquals(
                List.of(
                        Span.local(Kind.COMPUTE, 1, 1, 0, 8, 0, 10),
                        new Span(Kind.WAIT, 1, 1, -1, 1, 0, 8, 0, 10, 30),
                        Span.local(Kind.COMPUTE, 1, 1, 0, 8, 30, 50)),
                workers.getFirst());
    }

    /** Several rows of tiles: the second begins in rank 0's shard, and waits for rank 1's rows. */
    @Test
    void rowsOfTilesThatWaitForAllAreToldByTheOwnersOfTheirRows() {
        TileSchedule few =
                new TileSchedule(
                        new int[] {
                            0, 32, 0, 64, 0, 0, 0, 1, //
                            32, 32, 0, 64, 0, 32, 0, 1
                        },
                        new int[] {0, 6, 1, 0, 6},
                        new int[0]);
        TileTimes.Times times =
                new TileTimes.Times(
                        few, 1, new long[] {0, 50, 50, 90}, new long[] {10, 30, 60, 70}, 0);
        List<List<Span>> workers = new ArrayList<>();
        times.addSpans(new Owners(Shards.of(50, 14), true, ORIGINS, OWNERS.senders()), workers);
        assertEquals(
                List.of(
                        Span.local(Kind.COMPUTE, 0, 0, 0, 32, 0, 10),
                        new Span(Kind.WAIT, 1, 1, -1, 1, 0, 14, 0, 10, 30),
                        Span.local(Kind.COMPUTE, 0, 0, 0, 32, 30, 50),
                        Span.local(Kind.COMPUTE, 0, 0, 32, 18, 50, 60),
                        new Span(Kind.WAIT, 1, 1, -1, 1, 32, 0, 0, 60, 70),
                        Span.local(Kind.COMPUTE, 0, 0, 32, 18, 70, 90)),
                workers.getFirst());
    }

    /**
     * A tile of sums has rows of C. The third one begins in rank 1's shard and ends in rank 3's.
     */
    @Test
    void tilesOfSumsAreToldByTheOwnersOfTheirRows() {
        TileSchedule sums =
                new TileSchedule(
                        new int[] {
                            0, 128, 0, 256, 0, 0, 0, 0, //
                            200, 128, 0, 256, 0, 200, 0, 0, //
                            328, 128, 0, 256, 0, 328, 0, 0
                        },
                        new int[0],
                        new int[] {1, 0, 1});
        TileTimes.Times times =
                new TileTimes.Times(sums, 1, new long[] {0, 50, 50, 90, 90, 120}, new long[0], 0);
        List<List<Span>> workers = new ArrayList<>();
        Owners owners = new Owners(Shards.of(200, 200, 0, 100), true, List.of(), new int[0]);
        times.addSpans(owners, workers);
        assertEquals(
                List.of(
                        Span.local(Kind.COMPUTE, 0, 0, 0, 128, 0, 50),
                        Span.local(Kind.COMPUTE, 1, 1, 0, 128, 50, 90),
                        Span.local(Kind.COMPUTE, 1, 1, 128, 72, 90, 120)),
                workers.getFirst());
        long[] ends = new long[2];
        times.addSignals(ends);
        assertArrayEquals(new long[] {90, 120}, ends);
    }

    private static Span compute(int source, long row, long from, long until) {
        return Span.local(Kind.COMPUTE, source, source, row, 128, from, until);
    }

    private static Span waiting(int chunk, long row, long from, long until) {
        return new Span(Kind.WAIT, 1, 1, -1, chunk, row, 128, 0, from, until);
    }

    private static int[] line(int firstFlag, int count) {
        return IntStream.range(firstFlag, firstFlag + count).toArray();
    }

    /** Two copies were seen to end, the second and the fourth, and when the last one had ended. */
    @Test
    void unseenCopiesCameBetweenEndsThatWereSeen() {
        List<Span> untimed =
                IntStream.range(0, 5).mapToObj(i -> compute(1, 128L * i, 0, 0)).toList();
        long[] ends = {-1, 400, -1, 700, -1};
        assertEquals(
                List.of(
                        compute(1, 0, 10, 400).asEstimated(),
                        compute(1, 128, 10, 400),
                        compute(1, 256, 400, 700).asEstimated(),
                        compute(1, 384, 400, 700),
                        compute(1, 512, 700, 800).asEstimated()),
                DeviceTimeline.inOrder(untimed, line(0, 5), ends, 10, 800));
    }
}
