package dev.weft.cli.run;

import dev.weft.fabric.Fabric;
import java.io.IOException;
import java.util.concurrent.locks.LockSupport;

/**
 * Tells the peers, who wait, that this rank is at work that the fabric does not see: making data,
 * judging products.
 */
final class Heartbeat {

    private static final long EVERY_NS = 100_000_000;

    private final Fabric fabric;
    private volatile boolean ended;

    private Heartbeat(Fabric fabric) {
        this.fabric = fabric;
    }

    /** Work that may take long. */
    @FunctionalInterface
    interface Work<T> {
        T call() throws IOException;
    }

    static <T> T during(Fabric fabric, Work<T> work) throws IOException {
        Heartbeat heartbeat = new Heartbeat(fabric);
        Thread thread = Thread.ofPlatform().daemon().name("weft-heartbeat").start(heartbeat::beat);
        try {
            return work.call();
        } finally {
            heartbeat.ended = true;
            LockSupport.unpark(thread);
        }
    }

    private void beat() {
        while (!ended) {
            fabric.worked();
            LockSupport.parkNanos(this, EVERY_NS);
        }
    }
}
