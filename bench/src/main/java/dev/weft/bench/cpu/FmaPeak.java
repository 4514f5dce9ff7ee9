package dev.weft.bench.cpu;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * The most fp32 operations that some threads can do at once: fused multiply-adds in registers
 * alone. A turn of a few milliseconds, to be taken between the turns of products. Used by one
 * thread; its workers wait without a core of their own.
 */
final class FmaPeak implements AutoCloseable {

    private static final int CALLS = 40;
    private static final int STEPS = 1 << 14;

    /** Written so that no loop is for nothing; not private, or it would be taken for forgotten. */
    static volatile float sink;

    private final int threads;
    private final ExecutorService workers;
    private final CyclicBarrier together;
    private final boolean wide;

    /** Whether the Vector API is there; if not, this class must not be made. */
    static boolean available() {
        return ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent();
    }

    FmaPeak(int threads) throws InterruptedException {
        this.threads = threads;
        this.together = new CyclicBarrier(threads);
        this.workers =
                Executors.newFixedThreadPool(
                        threads, Thread.ofPlatform().daemon().name("weft-fma-", 0).factory());
        this.wide = flops(true) / bestNs(true) > flops(false) / bestNs(false);
    }

    /** Operations of one turn, of all threads together. */
    double flops() {
        return flops(wide);
    }

    private double flops(boolean wide) {
        return Fma.flops(wide ? 24 : 12, STEPS) * CALLS * threads;
    }

    /** From the first thread's start to the last one's end. */
    long takeNs() throws InterruptedException {
        return takeNs(wide);
    }

    /** Often enough that the loop is compiled. */
    private double bestNs(boolean wide) throws InterruptedException {
        long bestNs = Long.MAX_VALUE;
        for (int i = 0; i < 10; i++) {
            bestNs = Math.min(bestNs, takeNs(wide));
        }
        return bestNs;
    }

    private long takeNs(boolean wide) throws InterruptedException {
        List<Callable<long[]>> tasks = Collections.nCopies(threads, () -> work(wide));
        long startNs = Long.MAX_VALUE;
        long endNs = Long.MIN_VALUE;
        for (Future<long[]> future : workers.invokeAll(tasks)) {
            long[] span = future.resultNow();
            startNs = Math.min(startNs, span[0]);
            endNs = Math.max(endNs, span[1]);
        }
        return endNs - startNs;
    }

    private long[] work(boolean wide) throws Exception {
        together.await();
        long startNs = System.nanoTime();
        for (int call = 0; call < CALLS; call++) {
            sink = wide ? Fma.twentyFour(STEPS) : Fma.twelve(STEPS);
        }
        return new long[] {startNs, System.nanoTime()};
    }

    @Override
    public void close() {
        workers.shutdownNow();
    }
}
