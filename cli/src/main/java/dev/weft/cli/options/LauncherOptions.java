package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.ffi.MpiEnvironment;
import java.util.Locale;
import picocli.CommandLine.Option;

/** What the ranks are, and who starts them. */
public final class LauncherOptions {

    /** This process is one of the ranks that {@code weft launch} or torchrun started. */
    private static final String JOINED = "joined";

    @Option(
            names = "--launcher",
            converter = LowerCase.class,
            paramLabel = "KIND",
            description =
                    "What the ranks are: threads of one JVM, processes of this host, or"
                            + " mpi: processes that mpirun starts on this host and others. Under"
                            + " mpirun or srun each process is one rank (default: threads; under"
                            + " mpirun or srun, mpi).")
    String launcher;

    @Option(
            names = "--hostfile",
            paramLabel = "FILE",
            description = "With --launcher mpi: the hosts, for mpirun.")
    public String hostfile;

    @Option(
            names = "--mpi-args",
            paramLabel = "ARGS",
            description =
                    "With --launcher mpi: further arguments for mpirun, for example \"--map-by"
                            + " ppr:2:node\"; split at blanks that are not quoted.")
    public String mpiArgs;

    public boolean isJoined() {
        return JOINED.equals(launcher);
    }

    /** For a command that users start. */
    public Launcher start() {
        return start("threads", "processes", "mpi");
    }

    /** For a command that may also be one of the started ranks, which are processes. */
    public Launcher startOrJoin() {
        return start("threads", "processes", "mpi", JOINED);
    }

    private Launcher start(String... kinds) {
        boolean launched = MpiEnvironment.current().launched();
        String otherwise = launched ? "mpi" : "threads";
        String kind =
                launcher == null ? otherwise : OptionValues.oneOf("--launcher", launcher, kinds);
        if (!kind.equals("mpi") && (hostfile != null || mpiArgs != null)) {
            throw new UsageException(
                    (hostfile == null ? "--mpi-args " + mpiArgs : "--hostfile " + hostfile)
                            + " is for mpirun: it needs --launcher mpi, not "
                            + kind);
        }
        return kind.equals(JOINED)
                ? Launcher.PROCESSES
                : Launcher.valueOf(kind.toUpperCase(Locale.ROOT));
    }
}
