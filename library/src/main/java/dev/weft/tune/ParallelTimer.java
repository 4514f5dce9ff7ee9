package dev.weft.tune;

import dev.weft.statistics.Quantiles;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** Times the same work on several threads at once. */
final class ParallelTimer {

    private ParallelTimer() {}

    /**
     * The median over rounds and threads of what one piece of work takes when every thread does as
     * many, all starting together.
     *
     * @param work by thread: what it does again and again
     */
    static double medianNs(int threads, int pieces, IntFunction<Runnable> work) {
        List<Runnable> each = IntStream.range(0, threads).mapToObj(work).toList();
        double[] ns = new double[threads * pieces];
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CyclicBarrier start = new CyclicBarrier(threads);
        List<Thread> running = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int at = t * pieces;
            Runnable piece = each.get(t);
            running.add(
                    Thread.ofPlatform()
                            .daemon()
                            .start(() -> time(start, piece, ns, at, pieces, failure)));
        }
        for (Thread thread : running) {
            join(thread);
        }
        if (failure.get() != null) {
            throw new IllegalStateException("a measurement failed", failure.get());
        }
        return Quantiles.median(ns);
    }

    private static void time(
            CyclicBarrier start,
            Runnable piece,
            double[] ns,
            int at,
            int pieces,
            AtomicReference<Throwable> failure) {
        try {
            piece.run();
            start.await();
            for (int i = 0; i < pieces; i++) {
                long began = System.nanoTime();
                piece.run();
                ns[at + i] = System.nanoTime() - began;
            }
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
            // Nobody is to wait for one that will not come.
            start.reset();
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }
}
