package dev.weft.cli.diagnosis;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.fabric.CorruptSignalException;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.PeerFailedException;
import dev.weft.fabric.StallException;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Why one rank's part of a run failed, as it reports to the process that started it.
 *
 * @param rank its number in the world, or -1 where only the starter knows it
 * @param message its error, in one line
 * @param report how things stood, where it is known
 */
public record RankFailure(int rank, Kind kind, String message, Optional<FailureReport> report) {

    /** Environment variable: the file in which a rank leaves its failure for its starter. */
    public static final String FILE = "WEFT_END_FILE";

    /** Environment variable: the command has started this rank by mpirun, and listens. */
    public static final String MPI_STARTED = "WEFT_MPI_STARTED";

    private static final int MOST_CHARS = 1 << 21;

    /** What kind of error it was. */
    public enum Kind {
        STALL("stalled"),
        LOST("lost a peer"),
        TOLD("was told"),
        CORRUPT("corrupt signal"),
        OWN("failed");

        final String words;

        Kind(String words) {
            this.words = words;
        }
    }

    public static RankFailure of(Throwable failure) {
        String message = ErrorMessage.of(failure).lines().findFirst().orElse("failed");
        return failure instanceof FabricException e
                ? new RankFailure(e.rank(), kind(e), message, e.report())
                : new RankFailure(-1, Kind.OWN, message, Optional.empty());
    }

    private static Kind kind(FabricException failure) {
        return switch (failure) {
            case StallException e -> Kind.STALL;
            case PeerFailedException e -> Kind.TOLD;
            case CorruptSignalException e -> Kind.CORRUPT;
            default -> Kind.LOST;
        };
    }

    /**
     * Tells the process that has started this rank, if there is one that listens.
     *
     * @param usage whether all ranks fail alike, and one of them tells the user
     * @return whether there is
     */
    public static boolean tellStarter(Throwable failure, boolean usage) {
        RankFailure end = of(failure);
        String file = System.getenv(FILE);
        if (file != null) {
            try {
                PrivateFiles.write(Path.of(file), end.text().getBytes(StandardCharsets.UTF_8));
                return true;
            } catch (IOException e) {
                // Shared memory is full, for one: the error then goes to standard error alone.
                System.getLogger("dev.weft")
                        .log(System.Logger.Level.DEBUG, "cannot write {0}: {1}", file, e);
                return false;
            }
        }
        OptionalInt mpi = MpiEnvironment.current().rank();
        if (!usage && isHeardByStarter() && mpi.isPresent()) {
            FailureLines.of(end.ofRank(mpi.getAsInt())).forEach(System.err::println);
            return true;
        }
        return false;
    }

    /** Whether the command has started this rank by mpirun, and tells of its end. */
    public static boolean isHeardByStarter() {
        return System.getenv(MPI_STARTED) != null;
    }

    /** Of all ranks that are threads of this process: what was thrown, and what it suppressed. */
    public static List<RankFailure> allOf(Throwable thrown) {
        List<RankFailure> ends = new ArrayList<>(List.of(of(thrown)));
        for (Throwable other : thrown.getSuppressed()) {
            if (other instanceof FabricException) {
                ends.add(of(other));
            }
        }
        return ends;
    }

    /** Reads what a rank has left; empty where it was cut off, or is something else. */
    public static Optional<RankFailure> read(Path file) throws IOException {
        return Files.exists(file)
                ? readable(
                        new String(PrivateFiles.read(file, MOST_CHARS + 1), StandardCharsets.UTF_8))
                : Optional.empty();
    }

    /** Reads {@link #text}; empty where it is anything else. */
    public static Optional<RankFailure> readable(String text) {
        try {
            return Optional.of(parse(text));
        } catch (IllegalArgumentException e) {
            // A rank may be killed while it writes, or find no room: its standard error and what
            // the others say are worth more, and a line about this would stand before theirs.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, e.getMessage());
            return Optional.empty();
        }
    }

    /** This failure with the number that its starter knows the rank by. */
    public RankFailure ofRank(int known) {
        return new RankFailure(known, kind, message, report);
    }

    /** One line, for {@link #parse}. */
    public String text() {
        return "%s %s %s %s"
                .formatted(
                        rank,
                        kind,
                        URLEncoder.encode(message, StandardCharsets.UTF_8),
                        report.map(FailureReport::text).orElse("-"));
    }

    /**
     * What {@link #text} gave.
     *
     * @throws IllegalArgumentException with one line, if it is anything else
     */
    static RankFailure parse(String text) {
        if (text.length() > MOST_CHARS) {
            throw new IllegalArgumentException(
                    "not the end of a rank: %s characters: expected %s at most"
                            .formatted(text.length(), MOST_CHARS));
        }
        String[] parts = text.strip().split(" ", -1);
        if (parts.length != 4) {
            throw new IllegalArgumentException(
                    "not the end of a rank: " + parts.length + " parts: expected 4");
        }
        Optional<FailureReport> report =
                parts[3].equals("-")
                        ? Optional.empty()
                        : Optional.of(FailureReport.parse(parts[3]));
        return new RankFailure(
                Integer.parseInt(parts[0]),
                Kind.valueOf(parts[1]),
                URLDecoder.decode(parts[2], StandardCharsets.UTF_8).replaceAll("\\p{Cntrl}", " "),
                report);
    }
}
