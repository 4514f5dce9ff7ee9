package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.tensor.DType;
import picocli.CommandLine.Option;

/** The shapes of the ring and of FGCC, and the limits of all source systems' shapes. */
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

    public long m(long otherwise) {
        return size("--m", m, otherwise);
    }

    public long k(long otherwise) {
        return size("--k", k, otherwise);
    }

    public DType type() {
        return ProblemOptions.type("--dtype", dtype);
    }

    public static long size(String option, Long given, long otherwise) {
        long value = given == null ? otherwise : given;
        if (value < 1 || value > MAX_SIZE) {
            throw new UsageException(option + " " + value + ": expected 1 to " + MAX_SIZE);
        }
        return value;
    }

    public static int ranks(int ranks) {
        if (ranks < 1 || ranks > MAX_RANKS) {
            throw new UsageException("--n-ranks " + ranks + ": expected 1 to " + MAX_RANKS);
        }
        return ranks;
    }
}
