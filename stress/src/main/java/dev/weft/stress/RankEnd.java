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

    /** A copy of a rank's own words, by whoever knows when the fault happened. */
    RankEnd after(long ms) {
        return new RankEnd(rank, how, error, peer, how == How.RIGHT ? 0 : ms, message, tally);
    }
}
