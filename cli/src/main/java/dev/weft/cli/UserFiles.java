package dev.weft.cli;

import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;

/** The user's own A and B, whole, in files; ranks take their rows and columns out of them. */
record UserFiles(ProblemSpec spec, Matrix a, Matrix whole) implements Operands {

    private static final String SAFETENSORS = ".safetensors";

    /**
     * Opens both files. Shape and types come from the files where the options leave them open; raw
     * files need them from the options.
     */
    static UserFiles open(ProblemOptions options, String aSpec, String bSpec, Arena arena)
            throws IOException {
        ProblemSpec asked = options.spec();
        boolean aRaw = isRaw(aSpec);
        boolean bRaw = isRaw(bSpec);
        boolean rowsGiven = options.m != null || options.shards != null;
        Matrix a =
                MatrixFiles.read(
                        aSpec,
                        aRaw || options.aDtype != null ? asked.aType() : null,
                        aRaw || rowsGiven ? asked.m() * asked.groups() : MatrixFiles.ANY,
                        aRaw || options.k != null ? asked.k() : MatrixFiles.ANY,
                        arena);
        if (a.cols() < 1 || a.rows() % asked.groups() != 0) {
            throw new UsageException(
                    aSpec
                            + ": holds "
                            + a.describe()
                            + ": expected at least one column and rows"
                            + " that "
                            + asked.groups()
                            + " groups divide");
        }
        DType bType = bRaw || options.bDtype != null ? asked.bType() : null;
        long n = bRaw || options.n != null ? asked.n() : MatrixFiles.ANY;
        Matrix b =
                asked.transposeB()
                        ? MatrixFiles.read(bSpec, bType, n, a.cols(), arena)
                        : MatrixFiles.read(bSpec, bType, a.cols(), n, arena);
        Shards shards =
                options.shards != null
                        ? asked.shards()
                        : Shards.even(a.rows() / asked.groups(), asked.ranksPerGroup());
        long columns = asked.transposeB() ? b.rows() : b.cols();
        ProblemSpec spec = asked.ofFiles(shards, a.cols(), columns, a.dtype(), b.dtype());
        return new UserFiles(spec, a, b);
    }

    /** The file of what --a or --b names. */
    static Path path(String spec) {
        int tensor = spec.endsWith(".npy") ? -1 : spec.indexOf(SAFETENSORS + ":");
        return Path.of(tensor < 0 ? spec : spec.substring(0, tensor + SAFETENSORS.length()));
    }

    private static boolean isRaw(String spec) {
        return !spec.endsWith(".npy") && !spec.contains(SAFETENSORS);
    }

    @Override
    public Matrix shard(int worldRank) {
        int member = spec.memberOf(worldRank);
        long first = spec.groupOf(worldRank) * spec.m() + spec.shards().firstRow(member);
        return a.rows(first, spec.shards().rows(member));
    }

    @Override
    public Matrix b(int worldRank) {
        long first = spec.firstCol(worldRank);
        long cols = spec.cols(worldRank);
        return spec.transposeB() ? whole.rows(first, cols) : whole.block(0, spec.k(), first, cols);
    }
}
