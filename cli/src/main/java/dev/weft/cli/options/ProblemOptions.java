package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options that say what is computed, shared by run, gen-data and verify. */
public final class ProblemOptions {

    /** The most rows or columns of a matrix: far beyond any memory, and their sums fit 64 bits. */
    public static final long MOST_SIZE = Integer.MAX_VALUE * 1024L;

    private static final long DEFAULT_SEED = 19;

    private static final String FP8 = "fp8";

    @Option(
            names = {"-n", "--ranks", "--n-ranks"},
            paramLabel = "R",
            description = "Ranks of the world (default: ${DEFAULT-VALUE}).")
    public int ranks = 2;

    @Option(
            names = "--op",
            converter = LowerCase.class,
            paramLabel = "NAME",
            description =
                    "allgather-matmul: ranks hold rows of A, and each gets the product"
                            + " of all of them; matmul-reduce-scatter: ranks hold columns of A and"
                            + " rows of B, and each gets its rows of the sum of their products;"
                            + " matmul-allreduce: each gets all rows of that sum (default:"
                            + " ${DEFAULT-VALUE}).")
    public String op = ProblemSpec.GATHER;

    @Option(
            names = "--gm",
            paramLabel = "M",
            description = "Rows of A, per group (default: 2048, or the sum of --shards).")
    public Long m;

    @Option(
            names = "--gk",
            paramLabel = "K",
            description = "Columns of A and rows of B (default: 2048, or the sum of --k-parts).")
    public Long k;

    @Option(
            names = "--k-parts",
            paramLabel = "SIZES",
            split = ",",
            description =
                    "Columns of A, and rows of B, on each rank of a group if products"
                            + " are summed; uneven and zero allowed (default: even).")
    public long[] kParts;

    @Option(names = "--gn", paramLabel = "N", description = "Columns of B (default: 1024).")
    public Long n;

    @Option(
            names = "--shards",
            paramLabel = "ROWS,...",
            split = ",",
            description =
                    "Rows of A, or of C if products are summed, on each rank of a group;"
                            + " uneven and zero allowed (default: even; always even if groups"
                            + " differ in size).")
    public long[] shards;

    @Mixin public GroupsOption groups = new GroupsOption();

    @Mixin DtypeOption dtype = new DtypeOption(DType.FP16);

    @Option(
            names = "--a-dtype",
            converter = TypeName.class,
            paramLabel = "TYPE",
            description =
                    "Type of A if it differs (default: --dtype; with fp8, the type of"
                            + " both inputs before they are quantized, bf16; e4m3 or e5m2 for"
                            + " .npy and raw files of such bytes).")
    public String aDtype;

    @Option(
            names = "--b-dtype",
            converter = TypeName.class,
            paramLabel = "TYPE",
            description =
                    "Type of B if it differs (default: --dtype; with fp8 e4m3 or e5m2). q8_0, q4_0 or"
                            + " q4_k: B in such blocks, as a GGUF file has it, or quantized"
                            + " to them, times rows of A in 8 bits.")
    public String bDtype;

    @Option(
            names = "--scales",
            converter = LowerCase.class,
            paramLabel = "KIND",
            description =
                    "With --dtype fp8, what shares a scale: tensor, row (of A; column of B) or"
                            + " block (1 x 128 of A, 128 x 128 of B) (default: row).")
    public String scales;

    @Option(
            names = "--out-dtype",
            converter = TypeName.class,
            paramLabel = "TYPE",
            description = "Type of C (default: fp32).")
    public String outDtype;

    @Mixin public RhsOption rhs = new RhsOption();

    @Option(names = "--transpose-b", description = "B is stored as [N, K].")
    public boolean transposeB;

    @Option(
            names = "--seed",
            paramLabel = "SEED",
            description = "Seed of --data normal (default: 19; seed19 has no other).")
    public Long seed;

    @Option(
            names = "--data",
            converter = LowerCase.class,
            paramLabel = "KIND",
            description =
                    "Generated data: normal (standard normal) or seed19, as in the Ascend example:"
                            + " integers 1 to 4, B replicated unless --rhs says otherwise"
                            + " (default: ${DEFAULT-VALUE}).")
    public String data = "normal";

    @Option(
            names = "--data-dir",
            converter = FolderName.class,
            paramLabel = "DIR",
            description = "Folder for inputs, golden and outputs (default: ${DEFAULT-VALUE}).")
    public Path dataDir = Path.of("out");

    /** Checks everything and fills in what was not given. */
    public ProblemSpec spec() {
        return spec(false);
    }

    /**
     * As {@link #spec}, for inputs from files, which may be of 8 bits before they are quantized.
     */
    public ProblemSpec specOfFiles() {
        return spec(true);
    }

    private ProblemSpec spec(boolean ofFiles) {
        OptionValues.ranks(ranks);
        ReplicaGroups lists = groups.in(ranks);
        int perGroup = lists.groups().getFirst().size();
        Shards rows =
                shards == null
                        ? Shards.even(size("--gm", m, 2048, 0), perGroup)
                        : given("--shards", shards, "--gm", m, lists);
        ProblemSpec.Sums sums = sums(lists);
        ProblemSpec.Fp8 fp8 = fp8();
        DType a = typeOfA(fp8 != null, ofFiles);
        DType b = fp8 != null ? a : typeOfB();
        DType out = outDtype == null ? DType.FP32 : OptionValues.type("--out-dtype", outDtype);
        return new ProblemSpec(
                ranks,
                lists,
                rows,
                sums == null ? size("--gk", k, 2048, 1) : sums.kParts().totalRows(),
                size("--gn", n, 1024, sums == null ? 0 : 1),
                a,
                b,
                out,
                sums == null && columnSharded(),
                transposeB,
                OptionValues.oneOf("--data", data, "normal", "seed19"),
                seed(),
                sums,
                fp8,
                blocks());
    }

    /** Null if B has elements. */
    private BlockType blocks() {
        boolean given = bDtype != null && !dtype.label().equals(FP8) && BlockType.isLabel(bDtype);
        return given ? BlockType.of(bDtype) : null;
    }

    private DType typeOfA(boolean quantized, boolean ofFiles) {
        if (aDtype == null) {
            return quantized ? DType.BF16 : dtype.type();
        }
        boolean bytes = List.of(DType.E4M3.label(), DType.E5M2.label()).contains(aDtype);
        return quantized && ofFiles && bytes
                ? DType.of(aDtype)
                : OptionValues.type("--a-dtype", aDtype);
    }

    private DType typeOfB() {
        if (bDtype == null || blocks() != null) {
            return dtype.type();
        }
        if (DType.UNSCALED.stream().noneMatch(type -> type.label().equals(bDtype))) {
            throw new UsageException(
                    "--b-dtype: unknown dtype '%s': expected fp32, fp16, bf16, q8_0, q4_0 or q4_k",
                    bDtype);
        }
        return DType.of(bDtype);
    }

    /** The type that A of a file is converted to; null if it stays as it is. */
    public DType convertedA() {
        return converted(specOfFiles().aType(), aDtype);
    }

    /** Likewise of B, which {@code --b-dtype} says more of if it is quantized. */
    public DType convertedB() {
        ProblemSpec spec = specOfFiles();
        String given = spec.fp8() == null ? bDtype : aDtype;
        return converted(spec.bType(), spec.blocks() == null ? given : null);
    }

    private DType converted(DType type, String given) {
        boolean quantizes = dtype.label().equals(FP8);
        if (type.isScaled()) {
            // Says what is in the files.
            return null;
        }
        return given != null || dtype.isGiven() && !quantizes ? type : null;
    }

    /** Every rank has all of B, unless {@code --rhs} says otherwise. */
    public void replicateB() {
        if (!rhs.isGiven()) {
            rhs = new RhsOption(false);
        }
    }

    /** The Ascend example's data include a B that every rank has all of. */
    private boolean columnSharded() {
        return rhs.columnSharded() && (rhs.isGiven() || !data.equals("seed19"));
    }

    /** Null if inputs are multiplied unchanged. */
    private ProblemSpec.Fp8 fp8() {
        if (!dtype.label().equals(FP8)) {
            if (scales != null) {
                throw new UsageException(
                        "--scales %s with --dtype %s: expected --dtype fp8, or no --scales",
                        scales, dtype.label());
            }
            return null;
        }
        if (isSummed()) {
            throw new UsageException(
                    "--dtype fp8 with --op %s: expected --op %s", op, ProblemSpec.GATHER);
        }
        Scaling scaling =
                Scaling.of(
                        OptionValues.oneOf(
                                "--scales",
                                scales == null ? Scaling.ROW.label() : scales,
                                Arrays.stream(Scaling.values())
                                        .map(Scaling::label)
                                        .toArray(String[]::new)));
        String b =
                OptionValues.oneOf(
                        "--b-dtype",
                        bDtype == null ? DType.E4M3.label() : bDtype,
                        DType.E4M3.label(),
                        DType.E5M2.label());
        return new ProblemSpec.Fp8(DType.of(b), scaling);
    }

    /** Whether each rank has a part of K, and their products are summed. */
    public boolean isSummed() {
        return !OptionValues.oneOf(
                        "--op", op, ProblemSpec.GATHER, ProblemSpec.SCATTER, ProblemSpec.ALL)
                .equals(ProblemSpec.GATHER);
    }

    /** Null if rows of A are gathered. */
    private ProblemSpec.Sums sums(ReplicaGroups lists) {
        if (!isSummed()) {
            if (kParts != null) {
                throw new UsageException(
                        "--k-parts %s with --op %s, whose ranks have all of K: expected --op %s or"
                                + " %s, or --shards",
                        Arrays.toString(kParts), op, ProblemSpec.SCATTER, ProblemSpec.ALL);
            }
            return null;
        }
        if (rhs.isGiven() && rhs.columnSharded()) {
            throw new UsageException(
                    "--rhs column-sharded with --op %s, whose ranks have rows of B: expected no"
                            + " --rhs",
                    op);
        }
        Shards parts =
                kParts == null
                        ? ProblemSpec.evenParts(
                                size("--gk", k, 2048, 1),
                                lists.groups().getFirst().size(),
                                blocks())
                        : given("--k-parts", kParts, "--gk", k, lists);
        if (parts.totalRows() < 1) {
            throw new UsageException(
                    "--k-parts %s are 0 together: expected 1 to %s", parts, MOST_SIZE);
        }
        return new ProblemSpec.Sums(op.equals(ProblemSpec.ALL), parts);
    }

    private long seed() {
        if (seed != null && data.equals("seed19") && seed != DEFAULT_SEED) {
            throw new UsageException(
                    "--seed %s with --data seed19: expected %s, or --data normal",
                    seed, DEFAULT_SEED);
        }
        return seed == null ? DEFAULT_SEED : seed;
    }

    /**
     * A part for each rank of the first group.
     *
     * @param whole the option that gives their sum; {@code size} is null if not given
     */
    private static Shards given(
            String option, long[] parts, String whole, Long size, ReplicaGroups lists) {
        int perGroup = lists.groups().getFirst().size();
        String given = Arrays.toString(parts);
        if (parts.length != perGroup) {
            throw new UsageException(
                    "%s %s: expected %s numbers, one for each rank of a group",
                    option, given, perGroup);
        }
        if (Arrays.stream(parts).anyMatch(rows -> rows < 0 || rows > MOST_SIZE)
                || Arrays.stream(parts).sum() > MOST_SIZE) {
            throw new UsageException(
                    "%s %s: expected zero or more %s each, and at most %s together",
                    option, given, unit(option), MOST_SIZE);
        }
        Shards cut = Shards.of(parts);
        boolean alike = lists.groups().stream().allMatch(group -> group.size() == perGroup);
        if (!alike && !cut.equals(Shards.even(cut.totalRows(), perGroup))) {
            throw new UsageException(
                    "%s %s with --replica-groups %s: expected groups of equal size, or"
                            + " %s, whose %s are spread evenly",
                    option, given, lists, whole, unit(option));
        }
        if (size != null && size != cut.totalRows()) {
            throw new UsageException(
                    "%s %s are %s %s, %s says %s: expected the same",
                    option, given, cut.totalRows(), unit(option), whole, size);
        }
        return cut;
    }

    private static String unit(String option) {
        return option.equals("--shards") ? "rows" : "columns";
    }

    private static long size(String option, Long given, long otherwise, long least) {
        return OptionValues.between(option, given == null ? otherwise : given, least, MOST_SIZE);
    }
}
