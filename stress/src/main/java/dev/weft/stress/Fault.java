package dev.weft.stress;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * What goes wrong, when, and on which rank.
 *
 * @param rank the rank that it happens to
 */
record Fault(Type type, Phase phase, int rank) {

    /** What goes wrong. */
    enum Type {
        NONE,
        /** Every move and signal of the rank comes late by up to some milliseconds. */
        DELAY,
        /** Chunks for different ranks overtake each other; those for one rank must not. */
        REORDER,
        /** A chunk lands, and its flag is not raised. */
        DROP,
        /** A flag is raised twice. */
        DUPLICATE,
        /** A flag holds nonsense before its chunk lands. */
        CORRUPT,
        /** The thread that moves chunks hangs for longer than the deadline. */
        STALL,
        /** The rank's own code throws. */
        THROW,
        /** SIGKILL. */
        KILL,
        /** SIGSTOP. */
        FREEZE;

        /** Whether the rank itself can be no witness of what its peers then say. */
        boolean silencesTheRank() {
            return this == KILL || this == FREEZE || this == THROW || this == STALL;
        }

        /** Whether all ranks must end with the right result all the same. */
        boolean isHarmless() {
            return this == NONE || this == DELAY || this == REORDER || this == DUPLICATE;
        }

        /** The moments at which it can happen. */
        List<Phase> phases() {
            return switch (this) {
                case NONE, DELAY, REORDER -> List.of(Phase.FIRST_CHUNK);
                case DROP, DUPLICATE, CORRUPT, STALL ->
                        List.of(Phase.FIRST_CHUNK, Phase.LAST_CHUNK);
                case KILL, FREEZE -> List.of(Phase.values());
                case THROW ->
                        List.of(
                                Phase.ALLOCATION,
                                Phase.FIRST_CHUNK,
                                Phase.LAST_CHUNK,
                                Phase.BETWEEN_CALLS);
            };
        }

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }

        static Type of(String label) {
            return named(values(), label, "fault");
        }
    }

    /** A moment in a rank's life. */
    enum Phase {
        /** Its control block is there, and not all peers are. */
        RENDEZVOUS,
        /** It is about to reserve its part of an operator's memory. */
        ALLOCATION,
        /** The first chunk that it moves in a call. */
        FIRST_CHUNK,
        LAST_CHUNK,
        BETWEEN_CALLS,
        /** All calls are done, and it leaves. */
        CLOSE;

        String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }

        static Phase of(String label) {
            return named(values(), label.replace('-', '_'), "phase");
        }
    }

    private static <E extends Enum<E>> E named(E[] values, String label, String what) {
        for (E value : values) {
            if (value.name().equalsIgnoreCase(label)) {
                return value;
            }
        }
        throw new IllegalArgumentException(
                "unknown "
                        + what
                        + " '"
                        + label
                        + "': expected one of "
                        + Arrays.stream(values)
                                .map(v -> v.name().toLowerCase(Locale.ROOT).replace('_', '-'))
                                .collect(Collectors.joining(", ")));
    }
}
