package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** What holds for every machine and every call; each case is of one seed, which a failure names. */
class SimulatorPropertyTest {

    private static final int CASES = 300;
    private static final double ROUNDING = 1e-9;

    /**
     * What faster links or a faster engine may cost where cores are shared: to hurry one rank's
     * rows is to give it a view of the cores that the slowest rank had. Of 7,859 random calls on
     * shared cores 31 were slower with faster links, the worst by 1.9%, and 3 with a faster engine,
     * the worst by 4.3%; of 7,695 on tiles none.
     */
    private static final double SHARED_CORES = 0.1;

    private record Span(
            int rank,
            SpanSink.Activity kind,
            int to,
            long firstRow,
            long rows,
            double startNs,
            double endNs) {}

    @Test
    void neverBelowItsBounds() {
        for (long seed = 0; seed < CASES; seed++) {
            Prediction prediction = RandomCase.of(seed).run();
            String name = "seed " + seed + ": " + prediction;
            assertTrue(prediction.ns() >= prediction.bounds().ns() * (1 - ROUNDING), name);
            assertTrue(prediction.ns() >= prediction.arrivedNs(), name);
        }
    }

    @Test
    void theSameToTheLastBit() {
        for (long seed = 0; seed < CASES; seed++) {
            assertEquals(RandomCase.of(seed).run(), RandomCase.of(seed).run(), "seed " + seed);
        }
    }

    @Test
    void fasterLinksAreNeverSlower() {
        assertNoSlower(Machine::withLinksFaster);
    }

    @Test
    void aFasterEngineIsNeverSlower() {
        assertNoSlower(Machine::withEngineFaster);
    }

    private static void assertNoSlower(BiFunction<Machine, Double, Machine> faster) {
        for (long seed = 0; seed < CASES; seed++) {
            RandomCase random = RandomCase.of(seed);
            assertNoSlower(seed, random, faster.apply(random.machine(), factor(seed)));
        }
    }

    /** More than one and up to four. */
    private static double factor(long seed) {
        return 4 - 3 * new Random(~seed).nextDouble();
    }

    private static void assertNoSlower(long seed, RandomCase random, Machine faster) {
        double before = random.run().ns();
        double after = random.on(faster).run().ns();
        boolean sharesCores =
                random.machine().engine() instanceof CoreEngine && random.view() == View.PIPELINED;
        double slack = sharesCores ? SHARED_CORES : ROUNDING;
        assertTrue(after <= before * (1 + slack), "seed " + seed + ": " + before + " to " + after);
    }

    @Test
    void everyRankDoesWhatItsClassDoes() {
        int alike = 0;
        for (long seed = 0; seed < 10L * CASES; seed++) {
            RandomCase random = RandomCase.of(seed);
            int classes =
                    SymmetricRanks.of(random.machine(), random.scenario().on(random.machine()))
                            .count();
            if (classes < random.scenario().ranks()) {
                double every = random.runEveryRank(null).ns();
                assertEquals(every, random.run().ns(), every * ROUNDING, "seed " + seed);
                alike++;
            }
        }
        assertTrue(alike >= 100, alike + " cases");
    }

    @Test
    void spansOfATrackFollowEachOther() {
        for (long seed = 0; seed < CASES; seed++) {
            Map<String, List<Span>> tracks = new HashMap<>();
            double endNs = RandomCase.of(seed).runEveryRank(byTrack(tracks)).ns();
            for (List<Span> track : tracks.values()) {
                double until = 0;
                for (Span span : track) {
                    String name = "seed " + seed + ": " + span + " after " + until;
                    assertTrue(span.startNs() >= until && span.endNs() >= span.startNs(), name);
                    until = span.endNs();
                }
                assertTrue(until <= endNs, "seed " + seed + ": until " + until + " of " + endNs);
            }
        }
    }

    /** Products that wait for rows keep no unit busy, however long they take from end to end. */
    @Test
    void unitsAreNoLongerBusyThanTheProductAloneTakes() {
        int compared = 0;
        for (long seed = 0; seed < CASES; seed++) {
            RandomCase random = RandomCase.of(seed);
            if (!(random.machine().engine() instanceof TileEngine)) {
                continue;
            }
            RandomCase product =
                    new RandomCase(random.machine(), random.scenario(), View.COMPUTE_ONLY);
            double aloneNs = product.runEveryRank(null).ns();
            Map<String, List<Span>> tracks = new HashMap<>();
            random.runEveryRank(byTrack(tracks));
            for (List<Span> track : tracks.values()) {
                double busyNs =
                        track.stream()
                                .filter(span -> span.kind() == SpanSink.Activity.COMPUTE)
                                .mapToDouble(span -> span.endNs() - span.startNs())
                                .sum();
                String told = "seed " + seed + ": " + busyNs + " of " + aloneNs;
                assertTrue(busyNs <= aloneNs * (1 + ROUNDING), told);
                compared += busyNs > 0 ? 1 : 0;
            }
        }
        assertTrue(compared >= 100, compared + " tracks");
    }

    private static SpanSink byTrack(Map<String, List<Span>> tracks) {
        return (rank, track, told) ->
                tracks.computeIfAbsent(rank + " " + track, name -> new ArrayList<>())
                        .add(
                                new Span(
                                        rank,
                                        told.kind(),
                                        told.to(),
                                        told.firstRow(),
                                        told.rows(),
                                        told.startNs(),
                                        told.endNs()));
    }

    @Test
    void everyRowIsMultipliedOnceByEveryRankWithEveryPartOfTheColumns() {
        for (long seed = 0; seed < CASES; seed++) {
            RandomCase random = RandomCase.of(seed);
            List<Span> products = spans(random, SpanSink.Activity.COMPUTE);
            boolean multiplies =
                    random.view() != View.COMM_ONLY && !random.scenario().columns().isEmpty();
            if (!multiplies) {
                assertEquals(List.of(), products, "seed " + seed);
                continue;
            }
            Chunks chunks = random.scenario().chunks();
            for (int rank = 0; rank < random.scenario().ranks(); rank++) {
                Map<Long, Long> rows = partsByRow(products, rank);
                assertEquals(chunks.shards().totalRows(), rows.size(), "seed " + seed);
                assertTrue(
                        rows.values().stream().distinct().count() <= 1,
                        "seed " + seed + ": " + rows);
            }
        }
    }

    /** How often each row was multiplied. */
    private static Map<Long, Long> partsByRow(List<Span> spans, int rank) {
        return spans.stream()
                .filter(span -> span.rank() == rank)
                .flatMap(
                        span ->
                                LongStream.range(0, span.rows())
                                        .mapToObj(row -> span.firstRow() + row))
                .collect(Collectors.groupingBy(row -> row, Collectors.counting()));
    }

    @Test
    void everyChunkComesOnceToEveryRank() {
        for (long seed = 0; seed < CASES; seed++) {
            RandomCase random = RandomCase.of(seed);
            TestCall scenario = random.scenario();
            Map<List<Long>, Integer> arrivals = new HashMap<>();
            for (Span span : spans(random, SpanSink.Activity.TRANSFER)) {
                arrivals.merge(List.of((long) span.to(), span.firstRow()), 1, Integer::sum);
            }
            boolean transfers =
                    random.view() != View.COMPUTE_ONLY && scenario.writer() != Algorithm.DIRECT;
            Map<List<Long>, Integer> expected = transfers ? allArrivals(scenario) : Map.of();
            assertEquals(expected, arrivals, "seed " + seed);
        }
    }

    /** By destination and first row: as many as there are chunks side by side. */
    private static Map<List<Long>, Integer> allArrivals(TestCall scenario) {
        Map<List<Long>, Integer> arrivals = new HashMap<>();
        Chunks chunks = scenario.chunks();
        for (int source = 0; source < scenario.ranks(); source++) {
            for (int index = 0; index < chunks.count(source); index++) {
                Chunk chunk = chunks.chunk(source, index);
                for (long to = 0; to < scenario.ranks(); to++) {
                    if (to != source) {
                        long row = chunks.shards().firstRow(source) + chunk.firstRow();
                        arrivals.merge(List.of(to, row), 1, Integer::sum);
                    }
                }
            }
        }
        return arrivals;
    }

    private static List<Span> spans(RandomCase random, SpanSink.Activity kind) {
        Map<String, List<Span>> tracks = new HashMap<>();
        random.runEveryRank(byTrack(tracks));
        return tracks.values().stream()
                .flatMap(List::stream)
                .filter(span -> span.kind() == kind)
                .toList();
    }
}
