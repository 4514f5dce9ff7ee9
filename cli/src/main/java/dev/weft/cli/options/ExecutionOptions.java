package dev.weft.cli.options;

import static dev.weft.cli.console.UsageException.refuseIf;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ExecutionSpec.AscendTiles;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.cli.options.ExecutionSpec.Place;
import dev.weft.cli.options.ExecutionSpec.Rounds;
import dev.weft.cli.options.ExecutionSpec.Workers;
import dev.weft.cuda.Gpu;
import dev.weft.gemm.Gemms;
import dev.weft.op.Epilogue;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.AscendChunkRule;
import dev.weft.plan.cut.Cut;
import dev.weft.tensor.Matrix;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Stream;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options that say how a problem is run. */
public final class ExecutionOptions {

    private static final List<String> GPU_ENGINES = List.of("auto", "gated", "cublas");

    @Option(
            names = {"-r", "--run-mode"},
            converter = LowerCase.class,
            paramLabel = "MODE",
            description =
                    "Where to run: auto, cpu, cuda, npu or sim; cuda is NVIDIA GPUs,"
                            + " rank r on number r modulo their count; sim prices the plan on the"
                            + " machine of -v; npu, for commands of the Ascend example, runs its"
                            + " algorithm with cuda if there is a GPU, else cpu; auto is cpu; npu"
                            + " and auto print what they use (default: ${DEFAULT-VALUE}).")
    public String runMode = "auto";

    @Option(
            names = "--peers",
            converter = LowerCase.class,
            paramLabel = "WHERE",
            description =
                    "With -r cuda: device: every rank runs on a GPU, its own or a shared"
                            + " one; or host: only rank 0 runs, and copies the others' shards from"
                            + " pinned host memory, over the bus (default: device).")
    String peers;

    @Option(
            names = {"-v", "--machine", "--soc-version"},
            paramLabel = "NAME|FILE",
            description =
                    "The machine to simulate: a name, for example Ascend910B1, here"
                            + " (what ./weft calibrate measured), or a model's .json. In modes"
                            + " other than sim, its predicted times are printed with the measured"
                            + " ones.")
    public String socVersion;

    @Mixin AlgorithmOption algorithm;

    @Option(
            names = "--order",
            converter = LowerCase.class,
            paramLabel = "NAME",
            description =
                    "If products are summed: whole, as one rank would over all of K;"
                            + " by-rank, each rank's part from zero and then the parts in rank"
                            + " order; or by-rank-bf16, which rounds the parts to bf16 (half the"
                            + " bytes) (default: the order of --algorithm, whole for auto).")
    String order;

    @Mixin public LauncherOptions launch;

    @Option(
            names = "--link",
            paramLabel = "RATE",
            converter = Rates.class,
            description =
                    "Treat each rank as a separate host: what it sends travels no faster"
                            + " than this, for example 600mbit or 10gbit; the product keeps its"
                            + " speed (default: as fast as memory allows).")
    Long link;

    @Option(
            names = "--engine",
            converter = LowerCase.class,
            paramLabel = "NAME",
            description =
                    "Product engine. On the CPU: portable, the fastest whose bits are"
                            + " the same on every machine; native (machine code), vector or scalar,"
                            + " that one; amx, only for bf16, with its own bits; openblas, which"
                            + " must be installed and promises the float64 bound but no bits; auto"
                            + " is amx for bf16 if every rank has it, else portable. With -r cuda:"
                            + " auto, gated or cublas, which promises only the bound; auto is gated"
                            + " (default: ${DEFAULT-VALUE}).")
    String engine = "auto";

    @Option(
            names = "--base-m",
            paramLabel = "ROWS",
            description =
                    "Rows of a tile of A; this or --base-n means --chunk-rule ascend (tile"
                            + " default: 128).")
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
                    "Threads per rank that multiply (default: the cores divided by the"
                            + " ranks, at least 1). With -r cuda: thread blocks of the grid"
                            + " (default: as many as fit on the GPU). Its effect without"
                            + " --algorithm: see --comm-blocks.")
    Integer computeBlocks;

    @Option(
            names = "--comm-blocks",
            paramLabel = "T",
            description =
                    "Threads per rank that move chunks, with -r cuda copy streams (default: as few"
                            + " as the algorithm needs). Without --algorithm it means mesh-push, and"
                            + " --chunk-rule ascend unless chunks are set otherwise.")
    Integer commBlocks;

    @Option(
            names = "--splits-per-rank",
            paramLabel = "S",
            description =
                    "Chunks per shard (default: 64 to 128 if the rows allow it; fewer,"
                            + " of up to 16 MiB, with -r cuda).")
    Integer splitsPerRank;

    @Option(
            names = "--chunk-rows",
            paramLabel = "ROWS",
            description = "Rows per chunk, instead of --splits-per-rank.")
    Long chunkRows;

    @Option(
            names = "--chunk-rule",
            converter = LowerCase.class,
            paramLabel = "RULE",
            description =
                    "weft, or ascend: the Ascend example's chunks of --base-m x --base-n"
                            + " tiles and its waits for summary counters; auto is then mesh-push"
                            + " (default: weft, but see --base-m and --comm-blocks).")
    String chunkRule;

    @Option(
            names = "--strict",
            description = "Refuse what the Ascend example refuses, to compare with the original.")
    boolean strict;

    @Mixin OpenRoundsOptions rounds = new OpenRoundsOptions();

    @Option(
            names = "--keep-gathered",
            description = "Also keep gathered A, written to gathered_rank<r>.bin.")
    boolean keepGathered;

    @Option(
            names = "--npy",
            description =
                    "Also write outputs, and gathered A if it is kept, as .npy files for NumPy.")
    boolean npy;

    @Option(
            names = "--epilogue",
            paramLabel = "STEP,...",
            description =
                    "Steps that are applied, in order, to the elements of C before they"
                            + " are rounded: bias (added to each column), relu, gelu, gelu-tanh,"
                            + " silu, swiglu (the left half of a rank's columns is the gate, the"
                            + " right half is up, so C has half the columns), residual (adds a"
                            + " matrix), and last rmsnorm or layernorm (normalizes whole rows), for"
                            + " example bias,gelu; what steps add and multiply by is generated"
                            + " (default: none).")
    String epilogue;

    @Mixin DeadlineOption deadline;

    /** Whether only rank 0 runs, with the other shards in host memory. */
    public boolean hasHostPeers() {
        return "host".equals(peers);
    }

    /**
     * Checks everything and fills in what was not given.
     *
     * @param op the operator of {@link ProblemOptions}
     */
    public ExecutionSpec spec(String op) {
        boolean gathers = op.equals(ProblemSpec.GATHER);
        boolean cuda = usesGpu(op);
        boolean ascend = gathers && ascend();
        Order sums = gathers ? OptionValues.order(op, order, Order.WHOLE) : order(op);
        refuseIf(
                chunkRows != null && splitsPerRank != null,
                "--chunk-rows and --splits-per-rank each set the chunk size: give one of them");
        Launcher launcher = launch.start();
        checkPeers(cuda, launcher);
        checkLink(cuda, launcher);
        checkCublas(cuda, op);
        boolean ofExample = isAuto() && !hasHostPeers() && (ascend || gathers && streams());
        return new ExecutionSpec(
                new Place(cuda, hasHostPeers(), launcher, link == null ? 0 : link),
                ofExample ? Algorithm.MESH_PUSH.label() : algorithm.label,
                sums,
                new Workers(
                        engine(cuda),
                        count("--compute-blocks", computeBlocks, 1024),
                        count("--comm-blocks", commBlocks, 1024)),
                new Cut(
                        positive("--chunk-rows", chunkRows, 0),
                        count("--splits-per-rank", splitsPerRank, Integer.MAX_VALUE),
                        0),
                ascend ? new AscendTiles(baseM(), baseN()) : null,
                new Rounds(rounds.warmup(), rounds.iterations()),
                keepGathered,
                npy,
                epilogue(cuda),
                deadline.value);
    }

    /** Checks the mode; returns whether it uses the GPU. */
    private boolean usesGpu(String op) {
        OptionValues.oneOf("--run-mode", runMode, "auto", "cpu", "cuda", "npu", "sim");
        boolean npu = runMode.equals("npu");
        refuseIf(
                npu && !op.equals(ProblemSpec.GATHER),
                "--run-mode %s with --op %s: expected cpu, cuda, sim or auto",
                runMode,
                op);
        return runMode.equals("cuda") || npu && Gpu.unavailable().isEmpty();
    }

    /** The order of sums, which the algorithm must have. */
    private Order order(String op) {
        ReductionWriter reduction = OptionValues.reduction(op, algorithm.label);
        Order sums = OptionValues.order(op, order, reduction.order());
        refuseIf(
                reduction != Reduction.AUTO && !reduction.gives(sums),
                "--algorithm %s with --order %s: it sums in order %s, expected that or --algorithm"
                        + " auto",
                reduction.label(),
                sums.label(),
                reduction.order().label());
        return sums;
    }

    private void checkCublas(boolean cuda, String op) {
        boolean cublas = cuda && engine.equals("cublas");
        refuseIf(
                cublas && !op.equals(ProblemSpec.GATHER),
                "--engine cublas with --run-mode cuda and --op %s: expected --engine gated",
                op);
        refuseIf(
                cublas && computeBlocks != null,
                "--compute-blocks %s with --engine cublas: the library chooses its grids, give none",
                computeBlocks);
    }

    /** A paced link replaces shared memory, so there must be some to replace. */
    private void checkLink(boolean cuda, Launcher launcher) {
        if (link == null) {
            return;
        }
        String wrong =
                cuda || launcher == Launcher.MPI
                        ? cuda ? "--run-mode cuda" : "--launcher mpi"
                        : runMode.equals("sim") ? "--run-mode sim" : null;
        refuseIf(
                wrong != null,
                "--link %s with %s: expected --run-mode cpu and --launcher threads or processes",
                Rates.text(link),
                wrong);
        refuseIf(
                algorithm.label.equals(Algorithm.DIRECT.label()),
                "--link %s with --algorithm direct, which reads the memory of other ranks: expected"
                        + " one that moves chunks, or auto",
                Rates.text(link));
    }

    /** Null if there is none. */
    private String epilogue(boolean cuda) {
        if (epilogue == null) {
            return null;
        }
        // What it adds is created later.
        Supplier<Matrix> later = () -> null;
        UsageException.checked(
                "--epilogue: ", () -> Epilogue.parse(epilogue, later, later, later, later, 0));
        refuseIf(
                engine.equals(cuda ? "cublas" : "openblas"),
                "--epilogue %s with --engine %s, which promises no bits: results are verified by"
                        + " theirs, expected another engine",
                epilogue,
                engine);
        return epilogue;
    }

    private String engine(boolean cuda) {
        List<String> here = cuda ? GPU_ENGINES : Gemms.NAMES;
        List<String> there = cuda ? Gemms.NAMES : GPU_ENGINES;
        refuseIf(
                !here.contains(engine),
                "--engine '%s': expected one of %s with --run-mode %s (%s with %s)",
                engine,
                String.join(", ", here),
                runMode,
                String.join(", ", there),
                cuda ? "cpu" : "cuda");
        return cuda && engine.equals("auto") ? "gated" : engine;
    }

    private void checkPeers(boolean cuda, Launcher launcher) {
        if (peers == null) {
            return;
        }
        OptionValues.oneOf("--peers", peers, "device", "host");
        refuseIf(
                !cuda,
                "--peers %s says where the peers of a GPU are: it needs --run-mode cuda, not %s",
                peers,
                runMode);
        refuseIf(
                hasHostPeers() && launcher != Launcher.THREADS,
                "--peers host with --launcher %s: expected --launcher threads, since only rank 0"
                        + " runs",
                launcher.label());
    }

    /** Whether chunks are the Ascend example's: requested, or implied by its other options. */
    private boolean ascend() {
        boolean tiles = baseM != null || baseN != null;
        boolean sized = chunkRows != null || splitsPerRank != null;
        refuseIf(
                sized && tiles || chunkRows != null && splitsPerRank != null,
                "--chunk-rows, --splits-per-rank and --base-m/--base-n each set the chunk size:"
                        + " give one of them");
        refuseIf(
                algorithm.writer() == Algorithm.DIRECT && (tiles || commBlocks != null),
                "%s with --algorithm direct, where nothing travels: expected another algorithm, or"
                        + " neither --comm-blocks nor --base-m/--base-n",
                tiles ? "--base-m/--base-n" : "--comm-blocks " + commBlocks);
        if (chunkRule == null) {
            return tiles || streams() && !sized;
        }
        boolean asked =
                OptionValues.oneOf("--chunk-rule", chunkRule, "weft", "ascend").equals("ascend");
        refuseIf(
                asked && sized,
                "--chunk-rule ascend sets the chunk size: give no --chunk-rows or"
                        + " --splits-per-rank");
        refuseIf(
                !asked && tiles,
                "--chunk-rule weft with --base-m/--base-n: expected ascend, whose tiles they are,"
                        + " or none of them");
        return asked;
    }

    /**
     * Whether numbers of blocks, or a command for an NPU, imply the Ascend example's algorithm.
     * Peers in host memory push nothing.
     */
    private boolean streams() {
        boolean meant = computeBlocks != null || commBlocks != null || runMode.equals("npu");
        return meant && isAuto() && !hasHostPeers();
    }

    private boolean isAuto() {
        return algorithm.label.equals(Algorithm.AUTO.label());
    }

    private long baseM() {
        return positive("--base-m", baseM, AscendChunkRule.BASE_M);
    }

    private long baseN() {
        return positive("--base-n", baseN, AscendChunkRule.BASE_N);
    }

    /** With {@code --strict}, refuses what the Ascend example refuses. */
    public void checkStrict(ProblemSpec problem) {
        if (!strict) {
            return;
        }
        for (var group : problem.replicaGroups().groups()) {
            AscendRules.check(
                    group.size(), problem.m(), problem.k(), problem.n(), baseM(), baseN());
        }
        AscendRules.require(
                problem.shards().equals(Shards.even(problem.m(), problem.shards().ranks())),
                "--shards %s are uneven",
                problem.shards());
    }

    /** The given options about chunks and lanes, which some algorithms ignore. */
    public List<String> chunkOptions() {
        return Stream.of(
                        commBlocks == null ? null : "--comm-blocks",
                        chunkRows == null ? null : "--chunk-rows",
                        splitsPerRank == null ? null : "--splits-per-rank",
                        baseM == null && baseN == null ? null : "--base-m/--base-n")
                .filter(Objects::nonNull)
                .toList();
    }

    private static int count(String option, Integer number, int most) {
        return number == null ? 0 : (int) OptionValues.between(option, number, 1, most);
    }

    private static long positive(String option, Long number, long otherwise) {
        return number == null
                ? otherwise
                : OptionValues.between(option, number, 1, ProblemOptions.MOST_SIZE);
    }
}
