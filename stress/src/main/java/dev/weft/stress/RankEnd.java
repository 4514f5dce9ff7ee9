package dev.weft.stress;

/**
 * How one rank ended, or that it said nothing.
 *
 * @param how as the words of {@link RankMain}
 * @param afterMs from the fault to its error
 * @param peer whom the error names, or -1
 * @param tally of a rank whose calls were all right
 */
record RankEnd(
        int rank,
        How how,
        String kind,
        int peer,
        long afterMs,
        String message,
        Workload.Tally tally) {

    /** The kinds of end. */
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
        HUNG
    }

    static RankEnd right(int rank, Workload.Tally tally) {
        return new RankEnd(rank, How.RIGHT, "", -1, 0, "", tally);
    }

    static RankEnd of(int rank, How how, String kind, int peer, long afterMs, String message) {
        return new RankEnd(rank, how, kind, peer, afterMs, message, Workload.Tally.NOTHING);
    }
}
