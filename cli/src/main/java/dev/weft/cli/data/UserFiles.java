package dev.weft.cli.data;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.FileOperands.Piece;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.MatrixFiles.Located;
import dev.weft.tensor.QuantizedMatrix;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** The user's own A and B, whole, in files; ranks read their rows and columns from them. */
public record UserFiles(ProblemSpec spec, Located a, Located whole) {

    private static final String SAFETENSORS = ".safetensors";
    private static final String GGUF = ".gguf";

    /** Elements that are looked at in one go. */
    private static final long BATCH = 1 << 18;

    /**
     * Finds both matrices. Shape and types come from the files if the options leave them open; raw
     * files need them from the options.
     */
    public static UserFiles open(ProblemOptions options, String aSpec, String bSpec)
            throws IOException {
        ProblemSpec asked = options.specOfFiles();
        boolean aRaw = isRaw(aSpec);
        boolean bRaw = isRaw(bSpec);
        boolean rowsGiven = options.m != null || options.shards != null;
        boolean colsGiven = options.k != null || options.kParts != null;
        Located a =
                MatrixFiles.locate(
                        aSpec,
                        aRaw ? asked.aType() : typeOfBytes(asked),
                        aRaw || rowsGiven ? asked.m() * asked.groups() : MatrixFiles.ANY,
                        aRaw || colsGiven ? asked.k() : MatrixFiles.ANY);
        if (a.cols() < 1 || a.rows() % asked.groups() != 0) {
            throw new UsageException(
                    "%s: holds %s: expected at least one column and rows that %s groups divide",
                    aSpec, a.describe(), asked.groups());
        }
        long n = bRaw || options.n != null ? asked.n() : MatrixFiles.ANY;
        Located b = bRaw ? rawB(asked, bSpec, a.cols()) : fittingB(asked, bSpec, a.cols(), n);
        Shards shards =
                options.shards != null
                        ? asked.shards()
                        : Shards.even(a.rows() / asked.groups(), asked.shards().ranks());
        long columns = asked.transposeB() ? b.rows() : b.cols();
        if (asked.fp8() == null && (a.dtype().isScaled() || b.dtype().isScaled())) {
            throw new UsageException(
                    "A is %s and B %s, whose scales are not in the files: expected --dtype fp8,"
                            + " which quantizes them",
                    a.dtype().label(), b.dtype().label());
        }
        DType aType = aRaw ? null : options.convertedA();
        DType bType = bRaw ? null : options.convertedB();
        ProblemSpec spec =
                asked.ofFiles(
                        shards,
                        a.cols(),
                        columns,
                        aType == null ? a.dtype() : aType,
                        bType == null ? b.dtype() : bType);
        return new UserFiles(spec, a, b);
    }

    /** What a file that names no type holds; null if it has to name one. */
    private static DType typeOfBytes(ProblemSpec asked) {
        return asked.aType().isScaled() ? asked.aType() : null;
    }

    private static Located rawB(ProblemSpec asked, String spec, long k) throws IOException {
        return asked.transposeB()
                ? MatrixFiles.locate(spec, asked.bType(), asked.n(), k)
                : MatrixFiles.locate(spec, asked.bType(), k, asked.n());
    }

    /** One that says its shape, which is [K, N], or [N, K] if transposed. */
    private static Located fittingB(ProblemSpec asked, String spec, long k, long n)
            throws IOException {
        Located b = MatrixFiles.locate(spec, typeOfBytes(asked), MatrixFiles.ANY, MatrixFiles.ANY);
        boolean transposed = asked.transposeB();
        if (fits(b, transposed, k, n)) {
            return b;
        }
        String any = n == MatrixFiles.ANY ? "any" : Long.toString(n);
        throw new UsageException(
                "--b %s: holds %s: expected [%s, %s]%s",
                spec,
                b.describe(),
                transposed ? any : k,
                transposed ? k : any,
                fits(b, !transposed, k, n)
                        ? ", so it fits " + (transposed ? "without" : "with") + " --transpose-b"
                        : "");
    }

    private static boolean fits(Located b, boolean transposed, long k, long n) {
        return (transposed ? b.cols() : b.rows()) == k
                && (n == MatrixFiles.ANY || (transposed ? b.rows() : b.cols()) == n);
    }

    /** What is done to the elements, and those that are no numbers, one line each. */
    public List<String> remarks() throws IOException {
        List<String> remarks = new ArrayList<>();
        remark("A", a, spec.aType(), remarks);
        if (blocksOfFile()) {
            return remarks;
        }
        remark("B", whole, spec.bType(), remarks);
        if (spec.blocks() != null) {
            remarks.add("B is quantized to " + spec.blocks().label());
        }
        return remarks;
    }

    private static void remark(String name, Located file, DType type, List<String> remarks)
            throws IOException {
        if (!file.typeInFile().equals(type.label())) {
            boolean widens = type == DType.FP32 && !file.isFloat64();
            remarks.add(
                    "%s is %s in its file, %s to %s"
                            .formatted(
                                    name,
                                    file.typeInFile(),
                                    widens ? "converted" : "rounded",
                                    (file.isFloat64() || file.blocks() != null)
                                                    && type != DType.FP32
                                            ? "fp32 and then to " + type.label()
                                            : type.label()));
        }
        long nan = 0;
        long infinite = 0;
        long most = Math.max(1, BATCH / Math.max(1, file.cols()));
        for (long row = 0; row < file.rows(); row += most) {
            long rows = Math.min(most, file.rows() - row);
            try (Arena arena = Arena.ofConfined()) {
                Matrix batch = Matrix.allocate(arena, file.dtype(), rows, file.cols());
                file.read(row, 0, batch);
                for (float value : batch.converted(arena, type).toArray()) {
                    nan += Float.isNaN(value) ? 1 : 0;
                    infinite += Float.isInfinite(value) ? 1 : 0;
                }
            }
        }
        if (nan + infinite > 0) {
            remarks.add(
                    "%s has %d NaN and %d infinite elements of %d"
                            .formatted(name, nan, infinite, file.rows() * file.cols()));
        }
    }

    /** The file of what --a, --b or --c names. */
    public static Path path(String spec) {
        if (!spec.endsWith(".npy")) {
            for (String suffix : List.of(SAFETENSORS, GGUF)) {
                int tensor = spec.indexOf(suffix + ":");
                if (tensor >= 0) {
                    return Path.of(spec.substring(0, tensor + suffix.length()));
                }
            }
        }
        return Path.of(spec);
    }

    /** The file of a matrix that an option writes. */
    public static Path pathToWrite(String option, String spec) {
        if (spec.endsWith(".npz") || spec.endsWith(SAFETENSORS) || spec.contains(GGUF)) {
            throw new UsageException(
                    "%s %s: expected FILE.npy, FILE.safetensors:TENSOR, or another name for raw"
                            + " elements",
                    option, spec);
        }
        Path file = path(spec);
        if (!file.toString().equals(spec) && Files.exists(file)) {
            throw new UsageException(
                    "%s %s: %s exists, and to write one tensor would replace all that it holds:"
                            + " expected a new file",
                    option, spec, file);
        }
        return file;
    }

    private static boolean isRaw(String spec) {
        return !spec.endsWith(".npy") && !spec.contains(SAFETENSORS) && !spec.contains(GGUF);
    }

    /** The inputs of all ranks, which are kept as long as the arena. */
    public Operands open(Arena arena) {
        return new FileOperands(
                rank -> new Piece(a, spec.aType(), spec.a(rank)),
                rank -> new Piece(whole, spec.bType(), spec.b(rank)),
                arena);
    }

    private boolean blocksOfFile() {
        return spec.blocks() != null && whole.blocks() == spec.blocks() && spec.transposeB();
    }

    /** Reads the whole B once; null if the file does not have it in the blocks that are wanted. */
    public Supplier<QuantizedMatrix> blocks(Arena arena) {
        if (!blocksOfFile()) {
            return null;
        }
        QuantizedMatrix[] read = new QuantizedMatrix[1];
        return () -> {
            synchronized (read) {
                try {
                    read[0] = read[0] == null ? whole.readBlocks(arena) : read[0];
                } catch (IOException e) {
                    throw new UncheckedIOException(e.getMessage(), e);
                }
                return read[0];
            }
        };
    }
}
