package dev.weft.bench.cpu;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * What some threads can do at most at once. A turn of a few milliseconds, to be taken between the
 * turns of products. Used by one thread; its workers wait without a core of their own.
 */
abstract class MachineRate implements AutoCloseable {

    private final int threads;
    private final ExecutorService workers;
    private final CyclicBarrier barrier;

    MachineRate(int threads) {
        this.threads = threads;
        this.barrier = new CyclicBarrier(threads);
        this.workers =
                Executors.newFixedThreadPool(
                        threads, Thread.ofPlatform().daemon().name("weft-rate-", 0).factory());
    }

    final int threads() {
        return threads;
    }

    /** What all threads together do in one turn: operations, or bytes. */
    abstract double amount();

    /**
     * What one thread does: {@link #begin}, and then what counts.
     *
     * @param begin called once all is prepared; waits for the others
     */
    abstract void work(int thread, Begin begin) throws Exception;

    /** Waits until all threads are ready. */
    interface Begin {
        void together() throws Exception;
    }

    /** From the first thread's start to the last one's end. */
    final long takeNs() throws InterruptedException {
        List<Callable<long[]>> tasks = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            int own = thread;
            tasks.add(() -> span(own));
        }
        long startNs = Long.MAX_VALUE;
        long endNs = Long.MIN_VALUE;
        for (Future<long[]> future : workers.invokeAll(tasks)) {
            long[] span = result(future);
            startNs = Math.min(startNs, span[0]);
            endNs = Math.max(endNs, span[1]);
        }
        return endNs - startNs;
    }

    private long[] span(int thread) throws Exception {
        long[] span = new long[2];
        work(
                thread,
                () -> {
                    barrier.await();
                    span[0] = System.nanoTime();
                });
        span[1] = System.nanoTime();
        return span;
    }

    private static long[] result(Future<long[]> future) throws InterruptedException {
        try {
            return future.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException("a rate could not be measured", e.getCause());
        }
    }

    @Override
    public final void close() {
        workers.shutdownNow();
    }
}
