package dev.weft.tune;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.sim.CoreEngine;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;

/** Times products of an engine and fits their costs while all cores multiply, as in a call. */
final class ProductProbe {

    private static final int MOST_CALLS = 50;

    /** The approximate time for all calls of a shape in one round. */
    private static final double SHAPE_NS = 3e6;

    /** Products that would take longer are left out. */
    private static final double LONGEST_NS = 10e6;

    /** The least time of a warm-up: kernels and conversions are slow until they are compiled. */
    private static final long LEAST_WARM_NS = 500_000_000;

    private static final double STEADY = 0.9;

    /**
     * The most time spent waiting for a core: undisturbed probes waited under 3% of the time, and
     * those next to two busy programs on two cores 40 to 60%.
     */
    private static final double MOST_WAITED = 0.15;

    /**
     * The least part of the warm speed: undisturbed products stay above half, a disturbed round was
     * at 1/100.
     */
    private static final double LEAST_OF_WARM = 0.125;

    private final Gemm gemm;
    private final DType aType;
    private final ProbeBuffers buffers;
    private final double speed;
    private final List<Shape> shapes = new ArrayList<>();
    private final List<double[]> rounds = new ArrayList<>();

    private final List<Double> waited = new ArrayList<>();

    /** A product of some rows with a B of [k, n]. */
    private record Shape(long rows, long k, long n) {

        double operations(Gemm gemm) {
            double padded = (double) Math.ceilDiv(rows, gemm.rowQuantum()) * gemm.rowQuantum();
            return 2 * padded * k * n;
        }

        double[] features(Gemm gemm) {
            boolean far = k * n * Float.BYTES > gemm.cacheBytes();
            return new double[] {
                operations(gemm), (double) rows * k, far ? (double) k * n : 0, (double) rows * n, 1
            };
        }
    }

    /** The engine does about {@code speed} operations in a nanosecond. */
    ProductProbe(Gemm gemm, DType aType, ProbeBuffers buffers, List<long[]> factors, double speed) {
        this.gemm = gemm;
        this.aType = aType;
        this.buffers = buffers;
        this.speed = speed;
        long quantum = gemm.rowQuantum();
        long tall = gemm.blockRows();
        for (long[] kAndN : factors) {
            for (long rows : new long[] {quantum, 4 * quantum, tall / 4, tall}) {
                Shape shape = new Shape(rows, kAndN[0], kAndN[1]);
                boolean quick = shape.operations(gemm) < LONGEST_NS * speed;
                boolean fits = buffers.holds(rows, Math.max(kAndN[0], kAndN[1]));
                if (fits && (rows == quantum || quick) && !shapes.contains(shape)) {
                    shapes.add(shape);
                }
            }
        }
    }

    /**
     * Whether other programs had the cores for a good part of the time, or products were far slower
     * than when warm.
     */
    boolean isDisturbed() {
        double share = waited.stream().mapToDouble(Double::doubleValue).average().orElse(0);
        return share > MOST_WAITED || fit().costs().gflops() < LEAST_OF_WARM * speed;
    }

    /** Runs rounds that do not count, for a while and then until they get no faster. */
    void warmUp(Runnable heartbeat, long mostNs) {
        long start = System.nanoTime();
        double before = Double.MAX_VALUE;
        while (true) {
            double[] ns = time(heartbeat, false, () -> System.nanoTime() - start > mostNs);
            if (ns == null) {
                return;
            }
            double now = Arrays.stream(ns).sum();
            if (System.nanoTime() - start > LEAST_WARM_NS && now > STEADY * before) {
                return;
            }
            before = now;
        }
    }

    /** Drops all rounds. */
    void forget() {
        rounds.clear();
        waited.clear();
    }

    /**
     * Times every shape once more unless time is up, always the first time; returns whether all
     * were.
     */
    boolean round(Runnable heartbeat, BooleanSupplier isOver) {
        double[] ns = time(heartbeat, rounds.isEmpty(), isOver);
        if (ns != null) {
            rounds.add(ns);
        }
        return ns != null;
    }

    /**
     * Null if time was up. If it must finish in any case, shapes that there is no time for are
     * assumed to be as fast as the one before.
     */
    private double[] time(Runnable heartbeat, boolean inAnyCase, BooleanSupplier isOver) {
        double[] ns = new double[shapes.size()];
        for (int i = 0; i < ns.length; i++) {
            Shape shape = shapes.get(i);
            if (isOver.getAsBoolean()) {
                if (!inAnyCase) {
                    return null;
                }
                if (i > 0) {
                    // Slow kernels, not compiled yet, would take many times the available time.
                    ns[i] = ns[i - 1] * shape.operations(gemm) / shapes.get(i - 1).operations(gemm);
                    continue;
                }
            }
            try (Arena arena = Arena.ofShared()) {
                Matrix b = Matrix.allocate(arena, aType, shape.k(), shape.n());
                PackedB packed = gemm.pack(b, false, arena);
                double expected = rounds.isEmpty() ? SHAPE_NS : rounds.getLast()[i];
                int calls = (int) Math.clamp(SHAPE_NS / expected, 3, MOST_CALLS);
                long turn = rounds.size() * (long) MOST_CALLS;
                IntFunction<Runnable> work = thread -> products(shape, packed, thread, turn, arena);
                ParallelTimer.Timed timed =
                        ParallelTimer.time(buffers.threads(), calls, isOver, work);
                ns[i] = timed.medianNs();
                waited.add(timed.waited());
            }
            heartbeat.run();
        }
        return ns;
    }

    private Runnable products(Shape shape, PackedB b, int thread, long firstTurn, Arena arena) {
        Matrix a = buffers.source(thread, aType, shape.k());
        Matrix c = buffers.target(thread, DType.FP32, shape.n());
        Scratch scratch = gemm.scratch(shape.k(), shape.n(), arena);
        long places = Math.min(a.rows(), c.rows()) / shape.rows();
        long[] turn = {firstTurn};
        return () -> {
            long row = turn[0]++ % places * shape.rows();
            gemm.multiply(a, row, shape.rows(), b, c, row, scratch);
        };
    }

    /** The costs of products on one core, and the microseconds of each product of any size. */
    record Fitted(CoreEngine.Costs costs, double blockUs) {}

    /** Fits the costs to the medians of all rounds. */
    Fitted fit() {
        double[][] features =
                shapes.stream().map(shape -> shape.features(gemm)).toArray(double[][]::new);
        double[] ns = new double[shapes.size()];
        double fastestNs = Double.MAX_VALUE;
        for (int i = 0; i < ns.length; i++) {
            int shape = i;
            ns[i] = Quantiles.median(rounds.stream().mapToDouble(round -> round[shape]).toArray());
            fastestNs = Math.min(fastestNs, ns[i] / features[i][0]);
        }
        double[] fitted = LeastSquares.fit(features, ns);
        // Not more than twice as fast as the fastest product that was measured.
        double operationNs = Math.max(fitted[0], fastestNs / 2);
        return new Fitted(
                new CoreEngine.Costs(1 / operationNs, fitted[1], fitted[2], fitted[3]),
                fitted[4] / 1e3);
    }
}
