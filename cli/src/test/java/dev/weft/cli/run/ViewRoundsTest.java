package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.Progress;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Operator;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Random;
import java.util.function.BiFunction;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class ViewRoundsTest {

    @Test
    void theCallThatIsShownIsTheOneNearestToTheMedian() {
        assertEquals(0, ViewRounds.nearestToMedian(new long[] {7}, 16));
        assertEquals(1, ViewRounds.nearestToMedian(new long[] {900, 110, 100, 115, 104}, 16));
        assertEquals(3, ViewRounds.nearestToMedian(new long[] {1, 2, 100, 50, 99}, 16));
    }

    /** The median of 0 to 99 is 49.5, and what the call of 84 did is the nearest that is kept. */
    @Test
    void ofManyRoundsOneOfTheLatestIsShown() {
        assertEquals(84, ViewRounds.nearestToMedian(LongStream.range(0, 100).toArray(), 16));
    }

    @Test
    void moreRoundsAreMeasuredUntilTheNoiseIsSmall() {
        assertTrue(ViewRounds.isMore(10, 0.02, 0));
        assertFalse(ViewRounds.isMore(10, 0.01, 0), "known well enough");
        assertTrue(ViewRounds.isMore(10, Double.NaN, 0), "times of 0 tell nothing");
        assertTrue(ViewRounds.isMore(99, 0.02, 5_000_000_000L));
        assertFalse(ViewRounds.isMore(100, 0.02, 0), "no more than these");
        assertFalse(ViewRounds.isMore(10, 0.02, 5_000_000_001L), "no longer than this");
    }

    /** Two ranks measure; each may make calls of its own of the operator. */
    private static List<List<RoundTimes>> measured(
            int iterations, BiFunction<Operator<Matrix>, Integer, ViewRounds.Calls> calls)
            throws IOException {
        Shards shards = Shards.of(3, 5);
        try (World world = World.threads(2);
                Arena arena = Arena.ofShared()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 8, 4);
            Matrix b = Matrix.allocate(arena, DType.FP32, 4, 4);
            return world.call(
                    fabric -> {
                        try (AllGatherMatmul sequential =
                                AllGatherMatmul.on(fabric)
                                        .a(shards, DType.FP32)
                                        .b(b)
                                        .algorithm(Algorithm.SEQUENTIAL)
                                        .prepare()) {
                            int rank = fabric.rank();
                            sequential.call(a.rows(shards.firstRow(rank), shards.rows(rank)));
                            return new ViewRounds(
                                            Transport.of(fabric),
                                            2,
                                            iterations,
                                            new Progress(false))
                                    .measure(calls.apply(sequential, rank), sequential, null)
                                    .times();
                        }
                    });
        }
    }

    /** Times that ranks do not share, so that they must agree on the number of rounds. */
    private static ViewRounds.Calls noisy(Operator<Matrix> operator, long seed) {
        Random random = new Random(seed);
        return new ViewRounds.Calls() {
            @Override
            public long fusedNs(View view) {
                return operator.callInPlace(view).elapsedNs() * (1 + random.nextInt(100));
            }

            @Override
            public Timeline timeline() {
                return operator.lastResult().timeline();
            }
        };
    }

    @Test
    void allRanksMeasureAsManyRounds() throws IOException {
        long seed = System.nanoTime();
        List<List<RoundTimes>> noisy =
                measured(0, (operator, rank) -> noisy(operator, seed + rank));
        int rounds = noisy.getFirst().size();
        String told = rounds + " rounds, seed " + seed;
        assertTrue(rounds > ViewRounds.LEAST && rounds <= ViewRounds.MOST, told);
        assertEquals(rounds, noisy.getLast().size(), told);
        assertTrue(noisy.getLast().stream().allMatch(round -> round.pipelined() > 0), told);
        List<List<RoundTimes>> given =
                measured(3, (operator, rank) -> noisy(operator, seed + rank));
        given.forEach(times -> assertEquals(3, times.size(), "as many as were asked for"));
    }

    /** If auto has chosen the sequential algorithm, both views are one call: their ratio is 1. */
    @Test
    void aSequentialCallIsMeasuredOnce() throws IOException {
        for (List<RoundTimes> times : measured(0, (operator, rank) -> ViewRounds.of(operator))) {
            assertEquals(ViewRounds.LEAST, times.size(), "there is no noise");
            times.forEach(round -> assertEquals(round.sequential(), round.pipelined()));
        }
    }
}
