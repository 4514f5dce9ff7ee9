package dev.weft.tune;

import dev.weft.process.Uninterruptibly;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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

    private static final Path RUN_QUEUE = Path.of("/proc/thread-self/schedstat");

    /**
     * What was timed.
     *
     * @param medianNs the median time of one repetition, over all threads
     * @param waited the share of their time in which threads waited for a core; 0 if the system
     *     does not report it
     */
    record Timed(double medianNs, double waited) {}

    /**
     * Repeats something on all threads, which start together.
     *
     * @param isOver checked before every repetition but the first, which is always made
     * @param work by thread: what it repeats
     */
    static Timed time(
            int threads, int repetitions, BooleanSupplier isOver, IntFunction<Runnable> work) {
        List<Runnable> each = IntStream.range(0, threads).mapToObj(work).toList();
        double[] ns = new double[threads * repetitions];
        Arrays.fill(ns, Double.NaN);
        double[] waited = new double[threads];
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CyclicBarrier start = new CyclicBarrier(threads);
        List<Thread> running = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int thread = t;
            int at = t * repetitions;
            Runnable repeated =
                    () -> {
                        for (int i = 0;
                                i < repetitions && (i == 0 || !isOver.getAsBoolean());
                                i++) {
                            long began = System.nanoTime();
                            each.get(thread).run();
                            ns[at + i] = System.nanoTime() - began;
                        }
                    };
            Runnable all = () -> waited[thread] = waitedDuring(repeated);
            running.add(
                    Thread.ofPlatform()
                            .daemon()
                            .start(() -> together(start, each.get(thread), all, failure)));
        }
        Uninterruptibly.join(running);
        if (failure.get() != null) {
            throw new IllegalStateException("a measurement failed", failure.get());
        }
        return new Timed(
                Quantiles.median(Arrays.stream(ns).filter(one -> !Double.isNaN(one)).toArray()),
                Arrays.stream(waited).average().orElse(0));
    }

    /** The share of the time that the work takes in which this thread waits for a core. */
    private static double waitedDuring(Runnable work) {
        long began = System.nanoTime();
        long before = waitedNs();
        work.run();
        return (waitedNs() - before) / Math.max(1.0, System.nanoTime() - began);
    }

    /** Since this thread began; 0 if the system does not report it. */
    private static long waitedNs() {
        try {
            return Long.parseLong(Files.readString(RUN_QUEUE).split(" ")[1]);
        } catch (IOException | RuntimeException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no run queue times", e);
            return 0;
        }
    }

    private static void together(
            CyclicBarrier start, Runnable once, Runnable all, AtomicReference<Throwable> failure) {
        try {
            once.run();
            start.await();
            all.run();
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
            // The other threads must not wait for this one.
            start.reset();
        }
    }
}
