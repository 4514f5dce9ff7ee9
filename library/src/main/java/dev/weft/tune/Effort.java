package dev.weft.tune;

import java.time.Duration;
import java.util.List;

/**
 * How thoroughly to measure.
 *
 * @param inners [K, N] of the products that are timed
 * @param bufferBytes bytes of rows, and as many of products, for each thread
 * @param rounds in which everything is timed once
 * @param mostPerType after so long for each type of A no further round is begun, though there is
 *     always one
 * @param heartbeat called after every small step, for peers that wait meanwhile
 */
public record Effort(
        List<long[]> inners,
        long bufferBytes,
        int rounds,
        Duration mostPerType,
        Runnable heartbeat) {

    /** Takes up to three seconds for each type of A: enough to rank plans. */
    public static Effort quick(Runnable heartbeat) {
        return new Effort(
                List.of(new long[] {1024, 64}, new long[] {512, 512}, new long[] {2048, 512}),
                32L << 20,
                3,
                Duration.ofSeconds(3),
                heartbeat);
    }

    /** The same within another time, of which more lets disturbed rounds be repeated. */
    public Effort within(Duration most) {
        return new Effort(inners, bufferBytes, rounds, most, heartbeat);
    }

    /** Takes ten seconds or more, as {@code weft calibrate} does. */
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
                Duration.ofMinutes(1),
                heartbeat);
    }
}
