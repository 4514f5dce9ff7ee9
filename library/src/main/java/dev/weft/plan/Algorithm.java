package dev.weft.plan;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** The ways to gather; each is a way to write a plan. */
public enum Algorithm {
    /** Weft chooses among the others. */
    AUTO,
    /** Each rank hands chunks to its successor, in one direction. */
    RING,
    /** Both directions at once, half the hops. */
    BIDIRECTIONAL_RING,
    /** The owner writes its chunks to every peer. */
    MESH_PUSH,
    /** The reader copies chunks from every peer, starting with its successor. */
    MESH_PULL,
    /** Peers share memory: rows are multiplied straight out of the peer's shard. */
    DIRECT,
    /** Gather everything, then multiply: no overlap. */
    SEQUENTIAL;

    /** The name on the command line and in run records. */
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The algorithm named {@code label}; the inverse of {@link #label()}. */
    public static Algorithm of(String label) {
        for (Algorithm algorithm : values()) {
            if (algorithm.label().equals(label)) {
                return algorithm;
            }
        }
        throw new IllegalArgumentException(
                "unknown algorithm '" + label + "': expected one of " + labels());
    }

    private static String labels() {
        return Arrays.stream(values()).map(Algorithm::label).collect(Collectors.joining(", "));
    }
}
