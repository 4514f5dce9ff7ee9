package dev.weft.compat.command;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.DtypeOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.tensor.DType;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The shapes of the ring and of FGCC, and the limits of all source systems' shapes. */
public final class SourceOptions {

    /** Far beyond any memory, and no product of sizes overflows 64 bits. */
    private static final long MAX_SIZE = 1L << 24;

    @Option(names = "--m", paramLabel = "M", description = "Rows of A on each rank.")
    Long m;

    @Option(names = "--k", paramLabel = "K", description = "Columns of A and rows of B.")
    Long k;

    @Option(
            names = "--lnc",
            paramLabel = "L",
            description = "Logical-core programs per rank, 1 or 2 (default: ${DEFAULT-VALUE}).")
    int lnc = 1;

    @Mixin DtypeOption dtype = new DtypeOption(DType.BF16);

    public long m(long otherwise) {
        return size("--m", m, otherwise);
    }

    public long k(long otherwise) {
        return size("--k", k, otherwise);
    }

    public DType type() {
        return dtype.type();
    }

    /** Programs per rank of the rings, as in their source. */
    public int lnc() {
        if (lnc < 1 || lnc > 2) {
            throw new UsageException("lnc %s: expected 1 or 2", lnc);
        }
        return lnc;
    }

    public static long size(String option, Long given, long otherwise) {
        return OptionValues.between(option, given == null ? otherwise : given, 1, MAX_SIZE);
    }
}
