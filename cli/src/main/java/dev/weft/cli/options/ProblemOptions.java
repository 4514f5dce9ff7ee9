package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.nio.file.Path;
import java.util.Arrays;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options that say what is computed, shared by run, gen-data and verify. */
public final class ProblemOptions {

    /** Rows or columns of a matrix: far beyond any memory, and their sums stay in 64 bits. */
    public static final long MOST_SIZE = Integer.MAX_VALUE * 1024L;

    private static final long DEFAULT_SEED = 19;

    @Option(
            names = {"-n", "--n-ranks"},
            paramLabel = "R",
            description = "Ranks of the world (default: ${DEFAULT-VALUE}).")
    public int ranks = 2;

    @Option(
            names = "--gm",
            paramLabel = "M",
            description = "Rows of A, per group (default: 2048, or the sum of --shards).")
    public Long m;

    @Option(
            names = "--gk",
            paramLabel = "K",
            description = "Columns of A and rows of B (default: 2048).")
    public Long k;

    @Option(names = "--gn", paramLabel = "N", description = "Columns of B (default: 1024).")
    public Long n;

    @Option(
            names = "--shards",
            paramLabel = "ROWS,...",
            split = ",",
            description =
                    "Rows of A on each rank of a group, uneven and zero allowed (default: even,"
                            + " as it is where groups differ in size).")
    public long[] shards;

    @Mixin public GroupsOption groups = new GroupsOption();

    @Mixin DtypeOption dtype = new DtypeOption(DType.FP16);

    @Option(
            names = "--a-dtype",
            paramLabel = "TYPE",
            description = "Type of A where it differs (default: --dtype).")
    public String aDtype;

    @Option(
            names = "--b-dtype",
            paramLabel = "TYPE",
            description = "Type of B where it differs (default: --dtype).")
    public String bDtype;

    @Option(names = "--out-dtype", paramLabel = "TYPE", description = "Type of C (default: fp32).")
    public String outDtype;

    @Mixin public RhsOption rhs = new RhsOption(false);

    @Option(names = "--transpose-b", description = "B is stored as [N, K].")
    public boolean transposeB;

    @Option(
            names = "--seed",
            paramLabel = "SEED",
            description = "Seed of --data normal (default: 19; seed19 has no other).")
    public Long seed;

    @Option(
            names = "--data",
            paramLabel = "KIND",
            description =
                    "Generated data: normal (standard normal) or seed19 (integers 1 to 4)"
                            + " (default: ${DEFAULT-VALUE}).")
    public String data = "normal";

    @Option(
            names = "--data-dir",
            paramLabel = "DIR",
            description =
                    "Where inputs, golden and outputs are written (default: ${DEFAULT-VALUE}).")
    public Path dataDir = Path.of("out");

    /** Checks everything and fills in what was not given. */
    public ProblemSpec spec() {
        OptionValues.ranks(ranks);
        ReplicaGroups lists = groups.in(ranks);
        Shards rows = shardsOfFirst(lists);
        DType a = OptionValues.type("--a-dtype", aDtype == null ? dtype.label : aDtype);
        DType b = OptionValues.type("--b-dtype", bDtype == null ? dtype.label : bDtype);
        DType out = outDtype == null ? DType.FP32 : OptionValues.type("--out-dtype", outDtype);
        return new ProblemSpec(
                ranks,
                lists,
                rows,
                size("--gk", k, 2048, 1),
                size("--gn", n, 1024, 0),
                a,
                b,
                out,
                rhs.columnSharded(),
                transposeB,
                OptionValues.oneOf("--data", data, "normal", "seed19"),
                seed());
    }

    private long seed() {
        if (seed != null && data.equals("seed19") && seed != DEFAULT_SEED) {
            throw new UsageException(
                    "--seed %s with --data seed19: expected %s, or --data normal",
                    seed, DEFAULT_SEED);
        }
        return seed == null ? DEFAULT_SEED : seed;
    }

    private Shards shardsOfFirst(ReplicaGroups lists) {
        int perGroup = lists.groups().getFirst().size();
        if (shards == null) {
            return Shards.even(size("--gm", m, 2048, 0), perGroup);
        }
        String given = Arrays.toString(shards);
        if (shards.length != perGroup) {
            throw new UsageException(
                    "--shards %s: expected %s numbers, one for each rank of a group",
                    given, perGroup);
        }
        if (Arrays.stream(shards).anyMatch(rows -> rows < 0 || rows > MOST_SIZE)
                || Arrays.stream(shards).sum() > MOST_SIZE) {
            throw new UsageException(
                    "--shards %s: expected zero or more rows each, and at most %s together",
                    given, MOST_SIZE);
        }
        Shards rows = Shards.of(shards);
        boolean alike = lists.groups().stream().allMatch(group -> group.size() == perGroup);
        if (!alike && !rows.equals(Shards.even(rows.totalRows(), perGroup))) {
            throw new UsageException(
                    "--shards %s with --replica-groups %s: expected groups of as many ranks each,"
                            + " or --gm, whose rows are spread evenly",
                    given, lists);
        }
        if (m != null && m != rows.totalRows()) {
            throw new UsageException(
                    "--shards %s are %s rows, --gm says %s: expected the same",
                    given, rows.totalRows(), m);
        }
        return rows;
    }

    private static long size(String option, Long given, long otherwise, long least) {
        return OptionValues.between(option, given == null ? otherwise : given, least, MOST_SIZE);
    }
}
