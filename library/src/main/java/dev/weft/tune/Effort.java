package dev.weft.tune;

import dev.weft.process.EnvironmentVariable;
import java.time.Duration;
import java.util.List;

/**
 * How thoroughly to measure.
 *
 * @param how a description in words
 * @param inners [K, N] of the products that are timed
 * @param bufferBytes bytes of rows, and the same of products, for each thread
 * @param rounds the number of rounds, which time everything once
 * @param mostPerType after this long for each type of A no further round starts, though there is
 *     always one
 * @param heartbeat called after every small step, for peers that wait meanwhile
 */
public record Effort(
        String how,
        List<long[]> inners,
        long bufferBytes,
        int rounds,
        Duration mostPerType,
        Runnable heartbeat) {

    /** The environment variable for how long auto may measure the machine. */
    public static final String MEASURE_MS = "WEFT_AUTO_MEASURE_MS";

    /** The environment variable for how long auto may try its candidates. */
    public static final String TRIAL_MS = "WEFT_AUTO_TRIAL_MS";

    private static final long QUICK_MS = 3000;

    /** Takes up to three seconds for each type of A: enough to rank plans. */
    public static Effort quick(Runnable heartbeat) {
        return new Effort(
                "measured briefly",
                List.of(new long[] {1024, 64}, new long[] {512, 512}, new long[] {2048, 512}),
                32L << 20,
                3,
                Duration.ofMillis(EnvironmentVariable.ms(System.getenv(), MEASURE_MS, QUICK_MS)),
                heartbeat);
    }

    /** A copy with another bound; more time lets disturbed rounds be repeated. */
    public Effort within(Duration most) {
        return new Effort(how, inners, bufferBytes, rounds, most, heartbeat);
    }

    /** Takes ten seconds or more, as {@code weft calibrate} does. */
    public static Effort thorough(Runnable heartbeat) {
        return new Effort(
                "calibrated",
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
