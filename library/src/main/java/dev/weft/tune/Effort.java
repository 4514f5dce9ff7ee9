package dev.weft.tune;

import java.util.List;

/**
 * How long to measure.
 *
 * @param inners [K, N] of the products that are timed
 * @param roomBytes of rows, and as much for products, that each thread goes through
 * @param rounds in which everything is timed once
 * @param heartbeat called after every little step, so that others who wait know that it goes on
 */
public record Effort(List<long[]> inners, long roomBytes, int rounds, Runnable heartbeat) {

    /** A few seconds: enough to tell plans apart. */
    public static Effort quick(Runnable heartbeat) {
        return new Effort(
                List.of(new long[] {1024, 64}, new long[] {512, 512}, new long[] {2048, 512}),
                32L << 20,
                3,
                heartbeat);
    }

    /** Some ten seconds and more: what {@code weft calibrate} does. */
    public static Effort thorough(Runnable heartbeat) {
        return new Effort(
                List.of(
                        new long[] {1024, 16},
                        new long[] {4096, 16},
                        new long[] {2048, 64},
                        new long[] {1024, 128},
                        new long[] {4096, 128},
                        new long[] {256, 512},
                        new long[] {1024, 1024},
                        new long[] {2048, 2048}),
                64L << 20,
                9,
                heartbeat);
    }
}
