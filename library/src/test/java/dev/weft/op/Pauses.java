package dev.weft.op;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** Delays of random length and kind, drawn from a seed. Any thread may call. */
final class Pauses {

    private final long seed;
    private final int longestNs;
    private final AtomicLong drawn = new AtomicLong();

    Pauses(long seed, int longestNs) {
        this.seed = seed;
        this.longestNs = longestNs;
    }

    /** Mostly none; now and then a park, a busy wait or a yield. */
    void pause() {
        long draw = mix(seed + drawn.getAndIncrement() * 0x9E37_79B9_7F4A_7C15L);
        int lengthNs = (int) ((draw >>> 33) % longestNs);
        switch ((int) (draw & 7)) {
            case 0 -> LockSupport.parkNanos(lengthNs);
            case 1 -> {
                long end = System.nanoTime() + lengthNs / 4;
                while (System.nanoTime() < end) {
                    Thread.onSpinWait();
                }
            }
            case 2 -> Thread.yield();
            default -> {}
        }
    }

    private static long mix(long x) {
        long y = (x ^ x >>> 30) * 0xBF58_476D_1CE4_E5B9L;
        y = (y ^ y >>> 27) * 0x94D0_49BB_1331_11EBL;
        return y ^ y >>> 31;
    }
}
