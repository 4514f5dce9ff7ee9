package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.options.ExecutionSpec;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Hosts;
import dev.weft.report.Conclusion;
import dev.weft.report.RunRecord;
import dev.weft.report.Views;
import dev.weft.trace.Timeline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Figures of made-up times of several ranks. */
class RecordsTest {

    private static final double EPSILON = 1e-9;

    /** Ranks' times of each round: sequential, its gather, and pipelined. */
    private static RunRecord record(String op, List<List<RoundTimes>> ranks) {
        int count = ranks.size();
        List<RankReport> reports =
                ranks.stream()
                        .map(
                                times ->
                                        new RankReport(
                                                "ring",
                                                "cpu",
                                                "scalar",
                                                1,
                                                1,
                                                8,
                                                times,
                                                true,
                                                true,
                                                true,
                                                List.of(),
                                                List.of(),
                                                new Timeline(0, 0, 1, List.of())))
                        .toList();
        boolean summed = !op.equals(RunRecord.Problem.GATHER);
        return Records.of(
                new RunRecord.Problem(
                        count,
                        1,
                        64,
                        64,
                        64,
                        "fp32",
                        "fp32",
                        "fp32",
                        "replicated",
                        false,
                        "normal",
                        1,
                        null,
                        null,
                        op,
                        summed ? "32,32" : null,
                        null),
                1e6,
                ReplicaGroups.equal(count, 1),
                rank -> 8,
                ExecutionSpec.plain(
                        false, "ring", ExecutionSpec.Launcher.THREADS, 0, 0, Duration.ofSeconds(1)),
                null,
                null,
                Hosts.one(count),
                reports,
                null);
    }

    private static List<RoundTimes> times(long[] sequential, long[] gather, long[] pipelined) {
        return IntStream.range(0, pipelined.length)
                .mapToObj(
                        i ->
                                new RoundTimes(
                                        pipelined[i],
                                        pipelined[i],
                                        sequential[i],
                                        gather[i],
                                        pipelined[i],
                                        -1,
                                        0))
                .toList();
    }

    private static long[] same(long ns) {
        return LongStream.generate(() -> ns).limit(5).toArray();
    }

    /**
     * One rank has the longest gather and another the longest product, so that both together take
     * longer than any rank's call. Once such a run was slower than sequential, and half of its
     * gather was said to be hidden.
     */
    @Test
    void aCallsPartsAreThoseOfItsSlowestRank() {
        RunRecord record =
                record(
                        RunRecord.Problem.GATHER,
                        List.of(
                                times(same(1_000_000), same(600_000), same(1_060_000)),
                                times(same(1_010_000), same(200_000), same(1_050_000))));
        Views views = record.views();
        assertEquals(200, views.commUs(), EPSILON);
        assertEquals(810, views.computeUs(), EPSILON);
        assertEquals(1010.0 / 1060, views.speedup(), EPSILON);
        assertEquals(0, views.overlapEfficiency().orElseThrow());
        assertEquals(
                "Overlap cost 5.0% (+-0.0%): 0.95x as fast as gathering first.",
                Conclusion.of(record).sentence());
        assertEquals(5, record.execution().iterations(), "what was measured, not what was asked");
    }

    @Test
    void figuresNeverContradictEachOther() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int trial = 0; trial < 2000; trial++) {
            String op = trial % 3 == 0 ? "matmul-allreduce" : RunRecord.Problem.GATHER;
            assertConsistent(random(op, random), "seed " + seed + ", trial " + trial);
        }
    }

    private static RunRecord random(String op, Random random) {
        int rounds = 1 + random.nextInt(12);
        double noise = random.nextBoolean() ? 0.02 : 1;
        long gather = 1 + random.nextInt(1000_000);
        long product = 1 + random.nextInt(1000_000);
        long pipelined = 1 + random.nextLong(2 * (gather + product));
        List<List<RoundTimes>> ranks = new ArrayList<>();
        for (int rank = 0; rank < 1 + random.nextInt(4); rank++) {
            long[] gathers =
                    LongStream.generate(() -> vary(gather, noise, random)).limit(rounds).toArray();
            long[] whole = gathers.clone();
            long[] overlapped = new long[rounds];
            for (int i = 0; i < rounds; i++) {
                whole[i] += vary(product, noise, random);
                overlapped[i] = vary(pipelined, noise, random);
            }
            ranks.add(times(whole, gathers, overlapped));
        }
        return record(op, ranks);
    }

    private static long vary(long ns, double noise, Random random) {
        return 1 + Math.round(ns * (1 + noise * random.nextDouble()));
    }

    private static void assertConsistent(RunRecord record, String trial) {
        Views views = record.views();
        for (int i = 0; i < views.sequential().us().size(); i++) {
            double parts =
                    views.sequentialComm().us().get(i) + views.sequentialCompute().us().get(i);
            assertEquals(views.sequential().us().get(i), parts, 1e-6, trial);
        }
        assertEquals(views.sequential().median(), views.commUs() + views.computeUs(), 1e-6, trial);
        assertEquals(1 - 1 / views.speedup(), views.saved(), EPSILON, trial);
        assertTrue(views.limitFraction() <= 1, trial);
        views.overlapEfficiency()
                .ifPresent(
                        efficiency -> {
                            assertTrue(efficiency >= 0 && efficiency <= 1, trial);
                            assertEquals(views.speedup() > 1, efficiency > 0, trial);
                            assertEquals(
                                    Math.clamp(views.saved(), 0, views.hideable()),
                                    efficiency * views.hideable(),
                                    EPSILON,
                                    trial);
                        });
        assertFits(Conclusion.of(record), views, trial);
    }

    private static void assertFits(Conclusion conclusion, Views views, String trial) {
        String told = trial + ": " + conclusion.sentence();
        if (views.sequential().us().size() < 3) {
            assertTrue(views.overlapEfficiency().isEmpty(), told);
        }
        if (conclusion.sentence().startsWith("Overlap saved")) {
            assertTrue(views.speedup() > 1, told);
        } else if (conclusion.sentence().startsWith("Overlap cost")) {
            assertTrue(views.speedup() < 1, told);
        } else if (conclusion.sentence().startsWith("Too few rounds")) {
            assertTrue(views.sequential().us().size() < 3, told);
        }
    }
}
