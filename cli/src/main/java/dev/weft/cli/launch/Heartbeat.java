package dev.weft.cli.launch;

import dev.weft.fabric.Fabric;
import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * Tells waiting peers that this rank is doing work that the fabric does not see: generating data,
 * checking products.
 */
public final class Heartbeat {

    private static final long EVERY_MS = 100;
    private static final ThreadFactory THREADS =
            Thread.ofPlatform().daemon().name("weft-heartbeat").factory();

    private Heartbeat() {}

    /** Work that may take long. */
    @FunctionalInterface
    public interface Work<T> {
        T call() throws IOException;
    }

    /**
     * Does the work.
     *
     * @param fabric null if there are no peers
     */
    public static <T> T during(Fabric fabric, Work<T> work) throws IOException {
        if (fabric == null) {
            return work.call();
        }
        try (var beats = Executors.newSingleThreadScheduledExecutor(THREADS)) {
            var beating =
                    beats.scheduleAtFixedRate(fabric::worked, 0, EVERY_MS, TimeUnit.MILLISECONDS);
            try {
                return work.call();
            } finally {
                beating.cancel(false);
            }
        }
    }
}
