package dev.weft.cli;

import dev.weft.compat.Ascend;
import dev.weft.fabric.World;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** The options that say how a problem is run. */
final class ExecutionOptions {

    @Option(
            names = {"-r", "--run-mode"},
            paramLabel = "MODE",
            defaultValue = "auto",
            description =
                    "Where: auto, cpu, cuda or sim; cuda and sim are not there yet, so auto takes cpu"
                            + " and says so (default: ${DEFAULT-VALUE}).")
    String runMode;

    @Option(
            names = {"-v", "--soc-version"},
            paramLabel = "NAME",
            description = "The machine to simulate, for example Ascend910B1; only with -r sim.")
    String socVersion;

    @Option(
            names = "--algorithm",
            paramLabel = "NAME",
            defaultValue = "auto",
            description =
                    "auto, ring, bidirectional-ring, mesh-push, mesh-pull, direct or sequential"
                            + " (default: ${DEFAULT-VALUE}).")
    String algorithm;

    @Option(
            names = "--launcher",
            paramLabel = "KIND",
            defaultValue = "threads",
            description =
                    "Ranks are threads of one JVM or processes of this host"
                            + " (default: ${DEFAULT-VALUE}).")
    String launcher;

    @Option(
            names = "--engine",
            paramLabel = "NAME",
            defaultValue = "auto",
            description =
                    "Product engine: auto, vector, scalar or openblas, which must be installed and"
                            + " promises the float64 bound but not the bits of the unfused product"
                            + " (default: ${DEFAULT-VALUE}).")
    String engine;

    @Option(
            names = "--base-m",
            paramLabel = "ROWS",
            description =
                    "Rows of a tile of A; if this or --base-n is given, a chunk is --base-m rows by"
                            + " four tiles of --base-n columns (tile default: 128).")
    Long baseM;

    @Option(
            names = "--base-n",
            paramLabel = "COLS",
            description = "Columns of a tile of A; see --base-m (tile default: 256).")
    Long baseN;

    @Option(
            names = "--compute-blocks",
            paramLabel = "T",
            description =
                    "Threads per rank that multiply (default: the cores divided by the ranks, at"
                            + " least 1).")
    Integer computeBlocks;

    @Option(
            names = "--comm-blocks",
            paramLabel = "T",
            description =
                    "Threads per rank that move chunks (default: as few as the algorithm needs).")
    Integer commBlocks;

    @Option(
            names = "--splits-per-rank",
            paramLabel = "S",
            description = "Chunks per shard (default: 64 to 128 where the rows allow it).")
    Integer splitsPerRank;

    @Option(
            names = "--chunk-rows",
            paramLabel = "ROWS",
            description = "Rows per chunk, instead of --splits-per-rank.")
    Long chunkRows;

    @Option(
            names = "--chunk-rule",
            paramLabel = "RULE",
            defaultValue = "weft",
            description =
                    "weft, or ascend: the Ascend example's chunks of --base-m x --base-n tiles and"
                            + " its waits for summary counters; auto then is mesh-push"
                            + " (default: ${DEFAULT-VALUE}).")
    String chunkRule;

    @Option(
            names = "--strict",
            description = "Refuse what the Ascend example refuses, to compare with the original.")
    boolean strict;

    @Option(
            names = "--warmup",
            paramLabel = "N",
            defaultValue = "5",
            description = "Rounds before measuring (default: ${DEFAULT-VALUE}).")
    int warmup;

    @Option(
            names = "--iterations",
            paramLabel = "N",
            defaultValue = "10",
            description = "Measured rounds of each view (default: ${DEFAULT-VALUE}).")
    int iterations;

    @Option(
            names = "--keep-gathered",
            description = "Also keep gathered A, written to gathered_rank<r>.bin.")
    boolean keepGathered;

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            converter = Durations.class,
            description =
                    "Give up after this long without any progress: 30s, 500ms, 2m (default: 30s).")
    Duration deadline = World.DEFAULT_DEADLINE;

    ExecutionSpec spec() {
        checkRunMode();
        if (chunkRows != null && (splitsPerRank != null || baseM != null || baseN != null)
                || splitsPerRank != null && (baseM != null || baseN != null)) {
            throw new UsageException(
                    "--chunk-rows, --splits-per-rank and --base-m/--base-n each set the chunk size:"
                            + " give one of them");
        }
        boolean ascend =
                ProblemOptions.oneOf("--chunk-rule", chunkRule, "weft", "ascend").equals("ascend");
        boolean tiles = !ascend && (baseM != null || baseN != null);
        if (ascend && (chunkRows != null || splitsPerRank != null)) {
            throw new UsageException(
                    "--chunk-rule ascend sets the chunk size: give no --chunk-rows or"
                            + " --splits-per-rank");
        }
        return new ExecutionSpec(
                ascend && algorithm.equals(Algorithm.AUTO.label())
                        ? Algorithm.MESH_PUSH
                        : algorithm(),
                ProblemOptions.oneOf("--launcher", launcher, "threads", "processes")
                        .equals("processes"),
                engine(),
                count("--compute-blocks", computeBlocks, 1024),
                count("--comm-blocks", commBlocks, 1024),
                tiles ? baseM() : positive("--chunk-rows", chunkRows, 0),
                tiles ? 4 * baseN() : 0,
                count("--splits-per-rank", splitsPerRank, Integer.MAX_VALUE),
                ascend ? new ExecutionSpec.AscendTiles(baseM(), baseN()) : null,
                atLeast("--warmup", warmup, 0),
                atLeast("--iterations", iterations, 1),
                keepGathered,
                deadline);
    }

    /** Made here once, so that a missing library is told before any file is written. */
    private String engine() {
        String name =
                ProblemOptions.oneOf("--engine", engine, "auto", "vector", "scalar", "openblas");
        Gemms.byName(name);
        return name;
    }

    private long baseM() {
        return positive("--base-m", baseM, Ascend.DEFAULT_BASE_M);
    }

    private long baseN() {
        return positive("--base-n", baseN, Ascend.DEFAULT_BASE_N);
    }

    /** With {@code --strict}, refuses what the Ascend example refuses. */
    void checkStrict(ProblemSpec problem) {
        if (!strict) {
            return;
        }
        int ranks = problem.ranksPerGroup();
        Ascend.checkStrict(ranks, problem.m(), problem.k(), problem.n(), baseM(), baseN());
        if (!problem.shards().equals(Shards.even(problem.m(), ranks))) {
            throw new UsageException(
                    "--shards "
                            + problem.shards()
                            + " are uneven (the Ascend example refuses this)");
        }
    }

    /**
     * What was asked for about chunks and lanes, of which an algorithm without any makes no use.
     */
    List<String> chunkOptions() {
        List<String> given = new ArrayList<>();
        if (commBlocks != null) {
            given.add("--comm-blocks");
        }
        if (chunkRows != null) {
            given.add("--chunk-rows");
        }
        if (splitsPerRank != null) {
            given.add("--splits-per-rank");
        }
        if (baseM != null || baseN != null) {
            given.add("--base-m/--base-n");
        }
        return given;
    }

    private Algorithm algorithm() {
        try {
            return Algorithm.of(algorithm);
        } catch (IllegalArgumentException e) {
            throw new UsageException("--algorithm: " + e.getMessage());
        }
    }

    private void checkRunMode() {
        switch (ProblemOptions.oneOf("--run-mode", runMode, "auto", "cpu", "cuda", "sim")) {
            case "cuda" ->
                    throw new UsageException(
                            "--run-mode cuda is not there yet in Weft "
                                    + Version.number()
                                    + ": use cpu");
            case "sim" ->
                    throw new UsageException(
                            "--run-mode sim is not there yet in Weft "
                                    + Version.number()
                                    + ": use cpu");
            default -> {
                if (socVersion != null) {
                    throw new UsageException(
                            "--soc-version "
                                    + socVersion
                                    + " names a machine to simulate: it needs"
                                    + " --run-mode sim, not "
                                    + runMode);
                }
            }
        }
    }

    private static int count(String option, Integer given, int most) {
        if (given != null && (given < 1 || given > most)) {
            throw new UsageException(option + " " + given + ": expected 1 to " + most);
        }
        return given == null ? 0 : given;
    }

    private static long positive(String option, Long given, long otherwise) {
        if (given != null && (given < 1 || given > 1L << 40)) {
            throw new UsageException(option + " " + given + ": expected at least 1");
        }
        return given == null ? otherwise : given;
    }

    private static int atLeast(String option, int value, int least) {
        if (value < least || value > 1_000_000) {
            throw new UsageException(option + " " + value + ": expected " + least + " to 1000000");
        }
        return value;
    }
}
