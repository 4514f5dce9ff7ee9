package dev.weft.stress;

import dev.weft.fabric.FabricException;
import java.util.Locale;

/**
 * How one rank ended, or that it said nothing.
 *
 * @param error the type of its error, or empty
 * @param peer whom the error names, or -1
 * @param afterMs from the fault to its error
 * @param tally of a rank whose calls were all right
 */
record RankEnd(
        int rank,
        How how,
        String error,
        int peer,
        long afterMs,
        String message,
        Workload.Tally tally) {

    /** The ways to end. */
    enum How {
        /** All calls done, all results right. */
        RIGHT,
        /** A typed error. */
        ERROR,
        /** A wrong result: the worst that can happen. */
        WRONG,
        /** An error of another type. */
        OTHER,
        /** Its process is gone and said nothing. */
        DIED,
        /** It had to be killed. */
        HUNG;

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    static RankEnd right(int rank, Workload.Tally tally) {
        return new RankEnd(rank, How.RIGHT, "", -1, 0, "", tally);
    }

    static RankEnd of(int rank, How how, String error, int peer, long afterMs, String message) {
        return new RankEnd(rank, how, error, peer, afterMs, message, Workload.Tally.NOTHING);
    }

    static RankEnd of(int rank, Throwable failure, long afterMs) {
        How how =
                switch (failure) {
                    case FabricException e -> How.ERROR;
                    case CheckedOperator.WrongResult e -> How.WRONG;
                    default -> How.OTHER;
                };
        String line = String.valueOf(failure.getMessage()).lines().findFirst().orElse("");
        int peer = failure instanceof FabricException e ? e.peer() : -1;
        return of(rank, how, failure.getClass().getSimpleName(), peer, afterMs, line);
    }

    /** For {@link #parse}. */
    String words() {
        return how == How.RIGHT
                ? "right %d %d %d".formatted(tally.calls(), tally.sums(), tally.bytes())
                : how.label() + " " + error + " " + peer + " " + message;
    }

    static RankEnd parse(int rank, String words, long afterMs) {
        if (words.startsWith("right ")) {
            String[] numbers = words.split(" ");
            return right(
                    rank,
                    new Workload.Tally(
                            Long.parseLong(numbers[1]),
                            Long.parseLong(numbers[2]),
                            Long.parseLong(numbers[3])));
        }
        String[] parts = words.split(" ", 4);
        How how = How.valueOf(parts[0].toUpperCase(Locale.ROOT));
        return of(rank, how, parts[1], Integer.parseInt(parts[2]), afterMs, parts[3]);
    }
}
