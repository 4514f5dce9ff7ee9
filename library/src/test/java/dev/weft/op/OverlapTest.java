package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherView;
import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import java.lang.foreign.Arena;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Product and transfer of one step of the ring go on side by side, and so do the lanes: one is held
 * back until the other is done. Where one waited for the other, the call would never end. Rank 0 of
 * four is held. With one program and one lane it is the ring tutorial's plan, with two of each
 * FGCC's by either path, all through two buffers.
 */
class OverlapTest {

    private static final int RANKS = 4;
    private static final long M = 64;
    private static final long CHUNK_ROWS = 8;
    private static final Shards SHARDS = Shards.even(M * RANKS, RANKS);

    private final Arena arena = Arena.ofAuto();
    private final Problem problem = Problem.create(arena, SHARDS, 40, 24, DType.BF16, 3);

    /** Holds the first who comes until so much else has been done. */
    private static final class Gate {

        private final AtomicLong left;
        private final AtomicBoolean held = new AtomicBoolean();
        private final CountDownLatch open = new CountDownLatch(1);

        Gate(long wanted) {
            this.left = new AtomicLong(wanted);
        }

        void done(long count) {
            if (left.addAndGet(-count) == 0) {
                open.countDown();
            }
        }

        void holdFirst() {
            if (held.getAndSet(true)) {
                return;
            }
            try {
                assertTrue(open.await(20, TimeUnit.SECONDS), "one waits for the other");
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Hears of what the ranks do; who is told that something starts may hold it back. */
    private interface Watch {

        default void productStarts(int rank, int source) {}

        default void multiplied(int rank, int source, long rows) {}

        default void moveStarts(int rank, int lane, int source) {}

        default void moved(int rank, int lane, int source) {}
    }

    /** One call on every rank. Returns what rank 0 did. */
    private Timeline call(int programs, int lanes, boolean byLane, Watch watch) {
        List<Timeline> timelines =
                Ranks.call(
                        RANKS,
                        fabric -> {
                            int rank = fabric.rank();
                            AtomicReference<GatherView> plan = new AtomicReference<>();
                            GemmProxy engine =
                                    new GemmProxy(
                                            Gemms.auto(DType.BF16, DType.BF16),
                                            row -> watch.productStarts(rank, (int) (row / M)),
                                            (row, rows) ->
                                                    watch.multiplied(rank, (int) (row / M), rows));
                            Transport watched =
                                    MoverProxy.of(
                                            fabric,
                                            (lane, mover, index, move, flag, counter) -> {
                                                Lane moves = plan.get().lanes().get(lane);
                                                int source = moves.moves().get(index).source();
                                                watch.moveStarts(rank, lane, source);
                                                mover.move(index, move, flag, counter);
                                                watch.moved(rank, lane, source);
                                            });
                            AllGatherMatmulBuilder builder =
                                    problem.on(watched)
                                            .pingPong(lanes)
                                            .algorithm(
                                                    Algorithm.slicedRing(programs, lanes, byLane))
                                            .computeWorkers(programs)
                                            .engine(engine);
                            if (byLane) {
                                builder.chunkRows(CHUNK_ROWS);
                            } else {
                                builder.splitsPerRank(programs * lanes);
                            }
                            try (AllGatherMatmul op = builder.prepare()) {
                                Plan all = op.plan();
                                plan.set(new GatherView(all.steps().get(rank), all.chunks()));
                                op.call(problem.shard(rank));
                                Result<?> result = op.lastResult();
                                assertEquals(
                                        -1,
                                        problem.unfused()
                                                .firstDifferentRow(op.lastResult().product()),
                                        () -> "rank " + rank + ": " + result);
                                return result.timeline();
                            }
                        });
        return timelines.getFirst();
    }

    /** The source whose rows rank 0 multiplies and permutes in a step. */
    private static int source(int step) {
        return Math.floorMod(-step, RANKS);
    }

    /**
     * The first product of a step is held back until the successor has multiplied all that the
     * permutes of that step bring it.
     */
    @ParameterizedTest
    @CsvSource({
        "1, 1, false, 0", "1, 1, false, 1",
        "2, 2, false, 0", "2, 2, false, 1",
        "2, 2, true, 0", "2, 2, true, 1"
    })
    void permutesGoOnWhileTheProductOfTheirStepIsHeld(
            int programs, int lanes, boolean byLane, int step) {
        Gate gate = new Gate(M);
        Timeline timeline =
                call(
                        programs,
                        lanes,
                        byLane,
                        new Watch() {
                            @Override
                            public void productStarts(int rank, int source) {
                                if (rank == 0 && source == source(step)) {
                                    gate.holdFirst();
                                }
                            }

                            @Override
                            public void multiplied(int rank, int source, long rows) {
                                if (rank == 1 && source == source(step)) {
                                    gate.done(rows);
                                }
                            }
                        });
        assertMeanwhile(
                firsts(timeline, "compute", Kind.COMPUTE, step),
                spans(timeline, "lane", Kind.TRANSFER, step));
    }

    /** The first permute of a step is held back until all products of that step are done. */
    @ParameterizedTest
    @CsvSource({
        "1, 1, false, 0", "1, 1, false, 1",
        "2, 2, false, 0", "2, 2, false, 1",
        "2, 2, true, 0", "2, 2, true, 1"
    })
    void productsGoOnWhileThePermuteOfTheirStepIsHeld(
            int programs, int lanes, boolean byLane, int step) {
        Gate gate = new Gate(M);
        Timeline timeline =
                call(
                        programs,
                        lanes,
                        byLane,
                        new Watch() {
                            @Override
                            public void moveStarts(int rank, int lane, int source) {
                                if (rank == 0 && source == source(step)) {
                                    gate.holdFirst();
                                }
                            }

                            @Override
                            public void multiplied(int rank, int source, long rows) {
                                if (rank == 0 && source == source(step)) {
                                    gate.done(rows);
                                }
                            }
                        });
        assertMeanwhile(
                firsts(timeline, "lane", Kind.TRANSFER, step),
                spans(timeline, "compute", Kind.COMPUTE, step));
    }

    /**
     * A lane's first permute of a step is held back until the other lane has moved all its slices
     * of that step and of the next: as far as two buffers let it.
     */
    @ParameterizedTest
    @CsvSource({
        "false, 0, 0", "false, 0, 1", "false, 1, 0", "false, 1, 1",
        "true, 0, 0", "true, 0, 1", "true, 1, 0", "true, 1, 1"
    })
    void oneLaneGoesOnWhileTheOtherIsHeld(boolean byLane, int step, int held) {
        int slicesPerStep = byLane ? (int) (M / 2 / CHUNK_ROWS) : 2;
        Gate gate = new Gate(2 * slicesPerStep);
        Timeline timeline =
                call(
                        2,
                        2,
                        byLane,
                        new Watch() {
                            @Override
                            public void moveStarts(int rank, int lane, int source) {
                                if (rank == 0 && lane == held && source == source(step)) {
                                    gate.holdFirst();
                                }
                            }

                            @Override
                            public void moved(int rank, int lane, int source) {
                                boolean counts =
                                        source == source(step) || source == source(step + 1);
                                if (rank == 0 && lane != held && counts) {
                                    gate.done(1);
                                }
                            }
                        });
        List<Span> waiting = firsts(timeline, "lane-" + held, Kind.TRANSFER, step);
        String other = "lane-" + (1 - held);
        assertMeanwhile(waiting, spans(timeline, other, Kind.TRANSFER, step));
        assertMeanwhile(waiting, spans(timeline, other, Kind.TRANSFER, step + 1));
    }

    /**
     * All {@code others} started before the last of {@code firsts} ended, one of which was held.
     */
    private static void assertMeanwhile(List<Span> firsts, List<Span> others) {
        long endNs = firsts.stream().mapToLong(Span::endNs).max().orElseThrow();
        assertFalse(others.isEmpty());
        for (Span other : others) {
            assertTrue(other.startNs() < endNs, "all meanwhile");
        }
    }

    /** The first span of each track. */
    private static List<Span> firsts(Timeline timeline, String tracks, Kind kind, int step) {
        return timeline.tracks().stream()
                .filter(track -> track.name().startsWith(tracks))
                .flatMap(
                        track ->
                                spans(timeline, track.name(), kind, step).stream()
                                        .min(Comparator.comparingLong(Span::startNs))
                                        .stream())
                .toList();
    }

    private static List<Span> spans(Timeline timeline, String tracks, Kind kind, int step) {
        return timeline.tracks().stream()
                .filter(track -> track.name().startsWith(tracks))
                .flatMap(track -> track.spans().stream())
                .filter(span -> span.kind() == kind && span.source() == source(step))
                .toList();
    }
}
