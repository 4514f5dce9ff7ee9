package dev.weft.tune;

import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/** Times signals between two ranks that are threads. */
final class SignalProbe {

    private static final int ROUNDS = 15;

    /** Longer than any waiter spins, so that it sleeps when the signal comes. */
    private static final long ASLEEP_NS = 1_000_000;

    private static final long BYTES = 4096;

    private SignalProbe() {}

    /** The median time in microseconds from a signal until a sleeping waiter runs. */
    static double wakeUs() {
        long[] sentNs = new long[ROUNDS + 1];
        double[] tookNs = new double[ROUNDS];
        try (World world = World.threads(2, Duration.ofSeconds(30))) {
            world.call(
                    fabric -> {
                        try (Region region = Transport.of(fabric).allocate(BYTES)) {
                            for (int round = 1; round <= ROUNDS; round++) {
                                pass(Transport.of(fabric), region, round, sentNs, tookNs);
                            }
                            fabric.barrier();
                        }
                        return 0;
                    });
        }
        return Quantiles.median(tookNs) / 1e3;
    }

    private static void pass(
            Transport fabric, Region region, int round, long[] sentNs, double[] tookNs) {
        fabric.barrier();
        if (fabric.rank() == 0) {
            LockSupport.parkNanos(ASLEEP_NS);
            sentNs[round] = System.nanoTime();
            fabric.signal(region, 1, 0, round);
        } else {
            fabric.await(region, 1, 0, round, Awaited.of("a signal", 0));
            // The signal's release and this acquire make the sender's clock reading visible.
            tookNs[round - 1] = System.nanoTime() - sentNs[round];
        }
    }
}
