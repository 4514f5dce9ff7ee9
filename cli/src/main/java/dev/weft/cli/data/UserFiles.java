package dev.weft.cli.data;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.FileOperands.Piece;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.MatrixFiles.Located;
import java.io.IOException;
import java.nio.file.Path;

/** The user's own A and B, whole, in files; ranks take their rows and columns out of them. */
public record UserFiles(ProblemSpec spec, Located a, Located whole) implements FileOperands.Pieces {

    private static final String SAFETENSORS = ".safetensors";

    /**
     * Finds both matrices. Shape and types come from the files where the options leave them open;
     * raw files need them from the options.
     */
    public static UserFiles open(ProblemOptions options, String aSpec, String bSpec)
            throws IOException {
        ProblemSpec asked = options.spec();
        boolean aRaw = isRaw(aSpec);
        boolean bRaw = isRaw(bSpec);
        boolean rowsGiven = options.m != null || options.shards != null;
        boolean colsGiven = options.k != null || options.kParts != null;
        Located a =
                MatrixFiles.locate(
                        aSpec,
                        aRaw || options.aDtype != null ? asked.aType() : null,
                        aRaw || rowsGiven ? asked.m() * asked.groups() : MatrixFiles.ANY,
                        aRaw || colsGiven ? asked.k() : MatrixFiles.ANY);
        if (a.cols() < 1 || a.rows() % asked.groups() != 0) {
            throw new UsageException(
                    "%s: holds %s: expected at least one column and rows that %s groups divide",
                    aSpec, a.describe(), asked.groups());
        }
        DType bType = bRaw || options.bDtype != null ? asked.bType() : null;
        long n = bRaw || options.n != null ? asked.n() : MatrixFiles.ANY;
        Located b =
                asked.transposeB()
                        ? MatrixFiles.locate(bSpec, bType, n, a.cols())
                        : MatrixFiles.locate(bSpec, bType, a.cols(), n);
        Shards shards =
                options.shards != null
                        ? asked.shards()
                        : Shards.even(a.rows() / asked.groups(), asked.shards().ranks());
        long columns = asked.transposeB() ? b.rows() : b.cols();
        ProblemSpec spec = asked.ofFiles(shards, a.cols(), columns, a.dtype(), b.dtype());
        return new UserFiles(spec, a, b);
    }

    /** The file of what --a, --b or --c names. */
    public static Path path(String spec) {
        int tensor = spec.endsWith(".npy") ? -1 : spec.indexOf(SAFETENSORS + ":");
        return Path.of(tensor < 0 ? spec : spec.substring(0, tensor + SAFETENSORS.length()));
    }

    /** Of a matrix that an option has written. */
    public static Path pathToWrite(String option, String spec) {
        if (spec.endsWith(".npz") || spec.endsWith(SAFETENSORS)) {
            throw new UsageException(
                    "%s %s: expected FILE.npy, FILE.safetensors:TENSOR, or another name for raw"
                            + " elements",
                    option, spec);
        }
        return path(spec);
    }

    private static boolean isRaw(String spec) {
        return !spec.endsWith(".npy") && !spec.contains(SAFETENSORS);
    }

    @Override
    public Piece shard(int worldRank) {
        return new Piece(
                a,
                spec.firstRow(worldRank),
                spec.rows(worldRank),
                spec.firstInner(worldRank),
                spec.inners(worldRank));
    }

    @Override
    public Piece b(int worldRank) {
        long first = spec.firstCol(worldRank);
        long cols = spec.cols(worldRank);
        long firstInner = spec.firstInner(worldRank);
        long inners = spec.inners(worldRank);
        return spec.transposeB()
                ? new Piece(whole, first, cols, firstInner, inners)
                : new Piece(whole, firstInner, inners, first, cols);
    }
}
