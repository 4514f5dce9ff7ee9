package dev.weft.stress;

/** Runs a case on whatever it names. */
final class Cases {

    private Cases() {}

    static Ending run(Case run) {
        return switch (run.launcher()) {
            case THREADS -> ThreadRanks.run(run);
            case PROCESSES -> ProcessRanks.run(run);
            case MPI, HOSTS -> MpirunRanks.run(run);
        };
    }
}
