package dev.weft.tune;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.function.IntFunction;

/** Times the same work on several threads at once. */
final class Crowd {

    private Crowd() {}

    /**
     * The median over rounds and threads of what one piece of work takes when every thread does as
     * many, all starting together.
     *
     * @param work by thread: what it does again and again
     */
    static double medianNs(int threads, int pieces, IntFunction<Runnable> work) {
        double[] ns = new double[threads * pieces];
        CyclicBarrier start = new CyclicBarrier(threads);
        List<Thread> running = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int index = t;
            Runnable piece = work.apply(t);
            running.add(
                    Thread.ofPlatform()
                            .daemon()
                            .start(() -> time(start, piece, ns, index * pieces, pieces)));
        }
        for (Thread thread : running) {
            join(thread);
        }
        return median(ns);
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private static void time(CyclicBarrier start, Runnable piece, double[] ns, int at, int pieces) {
        piece.run();
        try {
            start.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new IllegalStateException("a measuring thread was interrupted", e);
        }
        for (int i = 0; i < pieces; i++) {
            long began = System.nanoTime();
            piece.run();
            ns[at + i] = System.nanoTime() - began;
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
