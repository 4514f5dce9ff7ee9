package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemms;
import dev.weft.op.Timeline.Kind;
import dev.weft.op.Timeline.Span;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Product and transfer of one step of the ring go on side by side: one is held back until the other
 * is done. Where one waited for the other, the call would never end. Rank 0 of four is held. With
 * one program and one lane it is the ring tutorial's plan, with two of each FGCC's by either path.
 */
class OverlapTest {

    private static final int RANKS = 4;
    private static final long M = 64;
    private static final Shards SHARDS = Shards.even(M * RANKS, RANKS);

    private static final Comparator<Span> BY_LENGTH =
            Comparator.comparingLong(span -> span.endNs() - span.startNs());

    private final Arena arena = Arena.ofAuto();
    private final Problem problem = Problem.create(arena, SHARDS, 40, 24, DType.BF16, 3);

    /** Opens once so many rows of one source have been multiplied. */
    private static final class Gate {

        private final int source;
        private final AtomicLong left;
        private final CountDownLatch open = new CountDownLatch(1);

        Gate(int source) {
            this.source = source;
            this.left = new AtomicLong(SHARDS.rows(source));
        }

        boolean isOf(long productRow) {
            return productRow / M == source;
        }

        void multiplied(long productRow, long rows) {
            if (isOf(productRow) && left.addAndGet(-rows) == 0) {
                open.countDown();
            }
        }

        void await() {
            try {
                assertTrue(open.await(20, TimeUnit.SECONDS), "one waits for the other");
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private AllGatherMatmul prepare(
            Transport fabric, int programs, int lanes, boolean byLane, GemmProxy engine) {
        PlanWriter ring = Algorithm.slicedRing(programs, lanes, byLane);
        AllGatherMatmulBuilder builder =
                problem.on(fabric).algorithm(ring).computeWorkers(programs).engine(engine);
        return (byLane ? builder.chunkRows(8) : builder.splitsPerRank(programs * lanes)).prepare();
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
        int source = Math.floorMod(-step, RANKS);
        Gate atSuccessor = new Gate(source);
        AtomicInteger held = new AtomicInteger();
        Ranks.run(
                RANKS,
                fabric -> {
                    int rank = fabric.rank();
                    GemmProxy engine =
                            new GemmProxy(
                                    Gemms.auto(),
                                    row -> {
                                        boolean holds = rank == 0 && atSuccessor.isOf(row);
                                        if (holds && held.getAndIncrement() == 0) {
                                            atSuccessor.await();
                                        }
                                    },
                                    (row, rows) -> {
                                        if (rank == 1) {
                                            atSuccessor.multiplied(row, rows);
                                        }
                                    });
                    try (AllGatherMatmul op = prepare(fabric, programs, lanes, byLane, engine)) {
                        check(op, rank);
                        if (rank == 0) {
                            Span product =
                                    spans(op, Kind.COMPUTE, source).stream()
                                            .max(BY_LENGTH)
                                            .orElseThrow();
                            List<Span> permutes = spans(op, Kind.TRANSFER, source);
                            assertFalse(permutes.isEmpty());
                            for (Span permute : permutes) {
                                assertTrue(permute.startNs() < product.endNs(), "all meanwhile");
                            }
                        }
                    }
                });
        assertTrue(held.get() > 0);
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
        int source = Math.floorMod(-step, RANKS);
        Gate here = new Gate(source);
        AtomicInteger held = new AtomicInteger();
        Ranks.run(
                RANKS,
                fabric -> {
                    int rank = fabric.rank();
                    AtomicReference<RankPlan> plan = new AtomicReference<>();
                    Held holding =
                            (lane, index) -> {
                                int moved =
                                        plan.get()
                                                .lanes()
                                                .get(lane)
                                                .transfers()
                                                .get(index)
                                                .source();
                                if (rank == 0 && moved == source && held.getAndIncrement() == 0) {
                                    here.await();
                                }
                            };
                    GemmProxy engine =
                            new GemmProxy(
                                    Gemms.auto(),
                                    row -> {},
                                    (row, rows) -> {
                                        if (rank == 0) {
                                            here.multiplied(row, rows);
                                        }
                                    });
                    try (AllGatherMatmul op =
                            prepare(holding(fabric, holding), programs, lanes, byLane, engine)) {
                        plan.set(op.plan());
                        check(op, rank);
                        if (rank == 0) {
                            Span permute =
                                    spans(op, Kind.TRANSFER, source).stream()
                                            .max(BY_LENGTH)
                                            .orElseThrow();
                            List<Span> products = spans(op, Kind.COMPUTE, source);
                            assertFalse(products.isEmpty());
                            for (Span product : products) {
                                assertTrue(product.startNs() < permute.endNs(), "all meanwhile");
                            }
                        }
                    }
                });
        assertTrue(held.get() > 0);
    }

    private void check(AllGatherMatmul op, int rank) {
        Result<?> result = op.call(problem.shard(rank));
        assertEquals(
                -1,
                problem.unfused().firstDifferentRow(op.lastResult().product()),
                () -> "rank " + rank + ": " + result);
    }

    private static List<Span> spans(AllGatherMatmul op, Kind kind, int source) {
        return op.lastResult().timeline().tracks().stream()
                .flatMap(track -> track.spans().stream())
                .filter(span -> span.kind() == kind && span.source() == source)
                .toList();
    }

    /** Called before a lane's move of that number. */
    private interface Held {
        void before(int lane, int index);
    }

    /** A fabric whose movers, one per lane, ask first. */
    private static Transport holding(Transport below, Held held) {
        AtomicInteger lanes = new AtomicInteger();
        InvocationHandler handler =
                (self, method, arguments) -> {
                    if (method.getName().equals("mover")) {
                        int lane = lanes.getAndIncrement();
                        ChunkMover mover = below.mover((IntConsumer) arguments[0]);
                        return proxy(
                                ChunkMover.class,
                                (ignored, call, values) -> {
                                    if (call.getName().equals("move")) {
                                        held.before(lane, (int) values[0]);
                                    }
                                    return invoke(mover, call, values);
                                });
                    }
                    return invoke(below, method, arguments);
                };
        return proxy(Transport.class, handler);
    }

    private static Object invoke(Object target, java.lang.reflect.Method method, Object[] arguments)
            throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(
                Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }
}
