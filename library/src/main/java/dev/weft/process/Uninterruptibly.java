package dev.weft.process;

import java.util.Arrays;
import java.util.Collection;

/** Waits that an interrupt does not end; it is passed on afterwards. */
public final class Uninterruptibly {

    private Uninterruptibly() {}

    /** Waits until all have ended: what they use must not be freed before. */
    public static void join(Collection<Thread> threads) {
        boolean interrupted = false;
        for (Thread thread : threads) {
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    public static void join(Thread... threads) {
        join(Arrays.asList(threads));
    }
}
