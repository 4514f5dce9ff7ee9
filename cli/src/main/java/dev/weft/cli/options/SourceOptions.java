package dev.weft.cli.options;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.UsageException;
import dev.weft.fabric.World;
import dev.weft.tensor.DType;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** The options that the commands of the ring and of FGCC share. */
public final class SourceOptions {

    /** Far beyond any memory, and no product of sizes overflows 64 bits. */
    private static final long MAX_SIZE = 1L << 24;

    private static final int MAX_RANKS = 4096;

    @Option(names = "--m", paramLabel = "M", description = "Rows of A on each rank.")
    Long m;

    @Option(names = "--k", paramLabel = "K", description = "Columns of A and rows of B.")
    Long k;

    @Option(
            names = "--dtype",
            paramLabel = "TYPE",
            defaultValue = "bf16",
            description = "Type of A and B: fp16, bf16 or fp32 (default: ${DEFAULT-VALUE}).")
    String dtype;

    @Option(
            names = "--seed",
            paramLabel = "SEED",
            defaultValue = "19",
            description = "Seed of the normal data (default: ${DEFAULT-VALUE}).")
    public long seed;

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            converter = Durations.class,
            description = "A wait without any progress gives up after this (default: 30s).")
    public Duration deadline = World.DEFAULT_DEADLINE;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Write the outcome as JSON; - is standard output.")
    public String json;

    @Mixin public ReportOptions reports;

    @Option(names = "--quiet", description = "Print nothing but errors.")
    public boolean quiet;

    public long m(long otherwise) {
        return size("--m", m, otherwise);
    }

    public long k(long otherwise) {
        return size("--k", k, otherwise);
    }

    public DType type() {
        try {
            return DType.of(dtype);
        } catch (IllegalArgumentException e) {
            throw new UsageException("--dtype: " + e.getMessage());
        }
    }

    public static long size(String option, Long given, long otherwise) {
        long value = given == null ? otherwise : given;
        if (value < 1 || value > MAX_SIZE) {
            throw new UsageException(option + " " + value + ": expected 1 to " + MAX_SIZE);
        }
        return value;
    }

    /** Joined ranks have the deadline of the command that has launched them. */
    public static void refuseDeadlineOfJoined(CommandSpec spec) {
        var given = spec.commandLine().getParseResult().matchedOption("--deadline");
        if (given != null) {
            throw new UsageException(
                    "--deadline "
                            + given.originalStringValues().getLast()
                            + " with --launcher joined: expected it before the --"
                            + " of 'weft launch', for all ranks");
        }
    }

    /**
     * The exit code; a failure is told in one line, however quiet the command is to be.
     *
     * @param failures what is wrong, each in one line
     */
    public static int exitCode(PrintWriter err, List<String> failures) {
        if (failures.isEmpty()) {
            return 0;
        }
        int others = failures.size() - 1;
        String more = others == 0 ? "" : "; and " + others + " more";
        err.println("weft: verification failed (" + failures.getFirst() + more + ")");
        err.flush();
        return ExitCode.FAILED;
    }

    public static int ranks(int ranks) {
        if (ranks < 1 || ranks > MAX_RANKS) {
            throw new UsageException("--n-ranks " + ranks + ": expected 1 to " + MAX_RANKS);
        }
        return ranks;
    }
}
