package dev.weft.cli.diagnosis;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.message.RankFile;
import dev.weft.cli.message.RankLines;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.CorruptSignalException;
import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.FailureReport;
import dev.weft.ffi.MpiEnvironment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Why one rank's part of a run failed, as it reports to the process that started it.
 *
 * @param rank its number in the world, or -1 if only the starter knows it
 * @param message its error, in one line
 * @param report the rank's state, if known
 */
public record RankFailure(int rank, Reason reason, String message, Optional<FailureReport> report) {

    /** Where a rank writes its failure for its starter. */
    public static final RankFile<RankFailure> FILE =
            new RankFile<>("WEFT_END_FILE", "end", RankFailure.class, 1 << 21);

    /** Environment variable: the command has started this rank by mpirun, and listens. */
    public static final String MPI_STARTED = "WEFT_MPI_STARTED";

    /** The reason of error. */
    public enum Reason {
        STALL("stalled"),
        LOST("lost a peer"),
        PEER_FAILED("was told"),
        CORRUPT("corrupt signal"),
        OWN("failed");

        final String words;

        Reason(String words) {
            this.words = words;
        }
    }

    public static RankFailure of(Throwable failure) {
        String message = ErrorMessage.of(failure).lines().findFirst().orElse("failed");
        return failure instanceof FabricException e
                ? new RankFailure(e.rank(), reason(e), message, e.report())
                : new RankFailure(-1, Reason.OWN, message, Optional.empty());
    }

    private static Reason reason(FabricException failure) {
        return switch (failure) {
            case StallException e -> Reason.STALL;
            case PeerFailedException e -> Reason.PEER_FAILED;
            case CorruptSignalException e -> Reason.CORRUPT;
            default -> Reason.LOST;
        };
    }

    /**
     * Tells the process that started this rank, if it listens.
     *
     * @param usage whether all ranks fail alike, so that only the first one tells the user
     * @return whether it listens
     */
    public static boolean tellStarter(Throwable failure, boolean usage) {
        RankFailure end = of(failure);
        if (FILE.isAskedFor()) {
            return FILE.tell(end);
        }
        OptionalInt mpi = MpiEnvironment.current().rank();
        if (isHeardByStarter() && mpi.isPresent() && (!usage || mpi.getAsInt() > 0)) {
            RankLines.tell(mpi.getAsInt(), end);
            return true;
        }
        return false;
    }

    /** Whether the command has started this rank by mpirun, and reports its end. */
    public static boolean isHeardByStarter() {
        return System.getenv(MPI_STARTED) != null;
    }

    /**
     * The failures of all ranks that are threads of this process: what was thrown, and what it
     * suppressed.
     */
    public static List<RankFailure> allOf(Throwable thrown) {
        List<RankFailure> ends = new ArrayList<>(List.of(of(thrown)));
        for (Throwable other : thrown.getSuppressed()) {
            if (other instanceof FabricException) {
                ends.add(of(other));
            }
        }
        return ends;
    }

    /** This failure with the number that its starter knows the rank by. */
    public RankFailure ofRank(int known) {
        return new RankFailure(known, reason, message, report);
    }
}
