package dev.weft.tune;

import dev.weft.statistics.Quantiles;
import dev.weft.threads.Uninterruptibly;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** Times work that several threads do at once. */
final class ParallelTimer {

    private ParallelTimer() {}

    /**
     * The median time of one repetition, over all threads. All threads start together.
     *
     * @param isOver asked before every repetition but the first, which alone is made in any case
     * @param work by thread: what it repeats
     */
    static double medianNs(
            int threads, int repetitions, BooleanSupplier isOver, IntFunction<Runnable> work) {
        List<Runnable> each = IntStream.range(0, threads).mapToObj(work).toList();
        double[] ns = new double[threads * repetitions];
        Arrays.fill(ns, Double.NaN);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CyclicBarrier start = new CyclicBarrier(threads);
        List<Thread> running = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int at = t * repetitions;
            Runnable piece = each.get(t);
            running.add(
                    Thread.ofPlatform()
                            .daemon()
                            .start(() -> time(start, piece, ns, at, repetitions, isOver, failure)));
        }
        Uninterruptibly.join(running);
        if (failure.get() != null) {
            throw new IllegalStateException("a measurement failed", failure.get());
        }
        return Quantiles.median(Arrays.stream(ns).filter(one -> !Double.isNaN(one)).toArray());
    }

    private static void time(
            CyclicBarrier start,
            Runnable piece,
            double[] ns,
            int at,
            int repetitions,
            BooleanSupplier isOver,
            AtomicReference<Throwable> failure) {
        try {
            piece.run();
            start.await();
            for (int i = 0; i < repetitions && (i == 0 || !isOver.getAsBoolean()); i++) {
                long began = System.nanoTime();
                piece.run();
                ns[at + i] = System.nanoTime() - began;
            }
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
            // The other threads must not wait for this one.
            start.reset();
        }
    }
}
