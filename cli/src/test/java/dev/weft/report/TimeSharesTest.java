package dev.weft.report;

import static dev.weft.report.Calls.call;
import static dev.weft.report.Calls.compute;
import static dev.weft.report.Calls.lane;
import static dev.weft.report.Calls.product;
import static dev.weft.report.Calls.rank;
import static dev.weft.report.Calls.track;
import static dev.weft.report.Calls.transfer;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.CallSpans.TrackKind;
import dev.weft.report.TimeShares.Activity;
import dev.weft.report.TimeShares.RankShares;
import dev.weft.report.TimeShares.Share;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class TimeSharesTest {

    private static List<RankShares> shares(CallSpans call, TrackKind workers) {
        return TimeShares.of(call, new SpanDependencies(call), workers);
    }

    private static List<RankShares> shares(CallSpans call) {
        return shares(call, TrackKind.COMPUTE);
    }

    private static double sum(RankShares rank) {
        return rank.parts().stream().mapToDouble(Share::ns).sum();
    }

    /**
     * Rank 1 starts 10 ns late, waits 30 ns in the open and 20 ns more without a span of it, spends
     * 5 ns between two products, and is done 35 ns before rank 0.
     */
    private static CallSpans told() {
        return call(
                rank(0, compute(product(0, 0, 0, 200, 0, 300))),
                rank(
                        1,
                        10,
                        lane(transfer(0, 0, 1, 0, 0, 90), transfer(0, 0, 1, 1, 90, 190)),
                        compute(
                                product(1, 1, 0, 200, 0, 60),
                                Calls.wait(0, 60, 90),
                                product(0, 1, 0, 50, 90, 130),
                                product(0, 1, 50, 50, 135, 170),
                                product(0, 1, 100, 100, 190, 255))));
    }

    @Test
    void tellsWorkFromWaitingFromTheRest() {
        List<RankShares> shares = shares(told());
        assertEquals(
                List.of(new Share(Activity.COMPUTE, -1, "multiplying", 300)),
                shares.get(0).parts());
        assertEquals(
                List.of(
                        new Share(Activity.COMPUTE, -1, "multiplying", 60 + 40 + 35 + 65),
                        new Share(Activity.WAIT, 0, "waiting for rows of rank 0", 30 + 20),
                        new Share(Activity.START, -1, "starting", 10),
                        new Share(Activity.OVERHEAD, -1, "between spans", 5),
                        new Share(Activity.DONE, -1, "done, others still at work", 35)),
                shares.get(1).parts());
    }

    @Test
    void lanesAreLookedAtWhereNothingIsMultiplied() {
        RankShares rank = shares(told(), TrackKind.LANE).get(1);
        assertEquals(1, rank.rank());
        assertEquals(190, of(rank, Activity.TRANSFER));
        assertEquals(100, of(rank, Activity.DONE));
        assertEquals(300, sum(rank));
        assertEquals(List.of(), shares(told(), TrackKind.LANE).get(0).parts(), "it has no lane");
    }

    private static double of(RankShares rank, Activity part) {
        return rank.parts().stream()
                .filter(share -> share.kind() == part)
                .mapToDouble(Share::ns)
                .sum();
    }

    @Test
    void severalWorkersCountInTheMean() {
        CallSpans call =
                call(
                        rank(
                                0,
                                compute(product(0, 0, 0, 10, 0, 100)),
                                track("compute-1", product(0, 0, 10, 10, 0, 40)),
                                track("compute-2")));
        RankShares rank = shares(call).getFirst();
        assertEquals(140.0 / 3, of(rank, Activity.COMPUTE), 1e-9);
        assertEquals(160.0 / 3, of(rank, Activity.DONE), 1e-9, "one had nothing to do");
        assertEquals(100, sum(rank), 1e-9);
    }

    @Test
    void aSentenceNamesTheMostIdleRankAndWhy() {
        String text = TimeShares.text(shares(told()), 300);
        assertTrue(text.contains("Rank 1 idled most, 31.7% of it"), text);
        assertTrue(text.contains("waiting for rows of rank 0 (0.1 us)"), text);
        assertTrue(text.startsWith("Ranks idled 15.8% of the call on average."), text);
        CallSpans busy =
                call(rank(0, compute(product(0, 0, 0, 10, 0, 50), product(0, 0, 10, 10, 51, 100))));
        assertEquals("No rank waited.", TimeShares.text(shares(busy), 100));
        CallSpans whole = call(rank(0, track("compute", product(0, 0, 0, 10, 0, 100))));
        assertNull(TimeShares.text(shares(whole), 100), "nothing but its length is known");
        assertNull(TimeShares.text(List.of(), 100));
        assertNull(TimeShares.text(shares(busy), 0), "no share of nothing");
    }

    /**
     * Spans in any order of kinds; some tracks have spans that overlap, as bad clocks make them.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void thePartsOfARankAddUpToTheCall(long seed) {
        for (int round = 0; round < 100; round++) {
            CallSpans call = random(new Random(1000 * seed + round));
            String which = "seed " + seed + ", round " + round;
            for (TrackKind workers : TrackKind.values()) {
                for (RankShares rank : shares(call, workers)) {
                    if (!rank.parts().isEmpty()) {
                        assertEquals(call.endNs(), sum(rank), 1e-6 * call.endNs(), which);
                    }
                    assertTrue(rank.parts().stream().allMatch(share -> share.ns() > 0), which);
                }
            }
        }
    }

    private static CallSpans random(Random random) {
        int size = 1 + random.nextInt(4);
        int groups = 1 + random.nextInt(2);
        List<RunRecord.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < size * groups; rank++) {
            List<Timeline.Track> tracks = new ArrayList<>();
            for (String name : List.of("caller", "lane-0", "lane-1", "compute-0", "compute-1")) {
                tracks.add(new Timeline.Track(name, randomSpans(random, size)));
            }
            Timeline timeline =
                    new Timeline(
                            rank % size,
                            random.nextInt(1000),
                            random.nextInt(20_000),
                            List.copyOf(tracks));
            ranks.add(new RunRecord.Rank(rank, rank / size, 200, 100, timeline));
        }
        return CallSpans.of(ranks, size * groups, size);
    }

    private static List<Timeline.Span> randomSpans(Random random, int size) {
        boolean overlaps = random.nextInt(4) == 0;
        List<Timeline.Span> spans = new ArrayList<>();
        long at = 0;
        for (int i = random.nextInt(12); i > 0; i--) {
            long start = Math.max(0, at + random.nextInt(300) - (overlaps ? 150 : 0));
            long end = start + random.nextInt(500);
            Kind kind = Kind.values()[random.nextInt(4)];
            spans.add(
                    new Timeline.Span(
                            kind,
                            random.nextInt(size),
                            random.nextInt(size),
                            kind == Kind.TRANSFER ? random.nextInt(size) : -1,
                            random.nextInt(3) - 1,
                            random.nextInt(200),
                            random.nextInt(100),
                            random.nextInt(1000),
                            start,
                            end));
            at = end;
        }
        return List.copyOf(spans);
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"AUTO"},
            mode = EnumSource.Mode.EXCLUDE)
    void thePartsOfRealAndSimulatedRanksAddUpToTheCall(Algorithm algorithm) {
        Shards shards = Shards.of(64, 0, 31);
        for (CallSpans call :
                List.of(
                        Calls.real(algorithm, shards, 2, builder -> builder.chunkRows(8)),
                        Calls.simulated("Ascend910B1", algorithm, shards, 4))) {
            List<RankShares> all = shares(call);
            assertEquals(call.worldSize(), all.size());
            for (RankShares rank : all) {
                assertFalse(rank.parts().isEmpty(), "every rank multiplies");
                assertEquals(call.endNs(), sum(rank), 1e-6 * call.endNs());
                assertTrue(of(rank, Activity.COMPUTE) > 0, rank::toString);
            }
        }
    }
}
