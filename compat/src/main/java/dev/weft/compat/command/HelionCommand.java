package dev.weft.compat.command;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.DtypeOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.compat.Helion;
import dev.weft.compat.command.ProductRun.At;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.gemm.Deviation;
import dev.weft.json.RecordJson;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.cut.Cut;
import dev.weft.search.PlanSearch;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft helion}: the Helion example's test, on every rank. */
@Command(
        name = "helion",
        description =
                "Helion's all_gather_matmul: a copy engine pulls the shards of A and"
                        + " reports every chunk while the product waits for the chunks that it"
                        + " reads. Every rank compares c with the fused operator's (1e-1, and bit"
                        + " for bit), with the unfused one's (bit for bit) and with float64, and"
                        + " gathered A with the inputs, and prints PASS or FAIL.",
        footer = {
            "",
            "Rank r has seed --seed + r, as in the example. Its B is the transpose of a contiguous",
            "[N, K]. At the example's size a rank multiplies 893 GFLOP: minutes on a few cores.",
            "",
            "Examples:",
            "  ./weft helion -n 4 --m 512 --n 832 --k 2048",
            "  ./weft helion -r cuda -n 8 --warmup 2 --iterations 10",
            "  ./weft helion -n 4 --m 512 --n 832 --k 2048 --splits-per-rank 4 --launcher processes",
            "  ./weft helion -r cuda -n 8 --block-sizes 128,256,64 --num-warps 8 --num-stages 3",
            "  ./weft helion -r sim -v h200-nvlink8",
            "  ./weft launch -n 8 -- ./weft helion --launcher joined",
            "",
            "Exit codes: 0 all ranks pass, 1 failed, 2 wrong usage."
        })
public final class HelionCommand extends ProductCommand {

    private static final float TOLERANCE = 1e-1f;

    @Option(
            names = "--m",
            paramLabel = "M",
            description = "Rows of A on all ranks together (default: ${DEFAULT-VALUE}).")
    long m = 4096;

    @Option(
            names = "--n",
            paramLabel = "N",
            description = "Columns of each rank's B (default: ${DEFAULT-VALUE}).")
    long n = 6656;

    @Option(
            names = "--k",
            paramLabel = "K",
            description = "Columns of A and rows of B (default: ${DEFAULT-VALUE}).")
    long k = 16384;

    @Option(
            names = "--splits-per-rank",
            paramLabel = "S",
            description = "Chunks of each shard (default: ${DEFAULT-VALUE}).")
    int splits = 1;

    @Mixin DtypeOption dtype = new DtypeOption(DType.BF16);

    @Option(
            names = "--block-sizes",
            paramLabel = "M,N,K",
            split = ",",
            description =
                    "Tiles of C and steps of K. On a GPU only some have kernels; others are refused"
                            + " with a list (the example's: 128,256,64; default: what suits the"
                            + " machine).")
    int[] blockSizes;

    @Option(
            names = "--num-warps",
            paramLabel = "W",
            description = "Warps that multiply a tile, on a GPU (default: 8 with --block-sizes).")
    Integer warps;

    @Option(
            names = "--num-stages",
            paramLabel = "S",
            description =
                    "Steps of K that are loaded ahead, on a GPU (default: 3 with --block-sizes).")
    Integer stages;

    private Helion.Config config;

    public HelionCommand() {
        super("weft.helion/1", 8, 0, 1);
        seed = 42;
    }

    @Override
    GatherWriter algorithm(List<Integer> group) {
        return Algorithm.MESH_PULL;
    }

    @Override
    ProductRun run(int count, Arena arena) {
        SourceOptions.size("--m", m, m);
        SourceOptions.size("--n", n, n);
        SourceOptions.size("--k", k, k);
        OptionValues.between("--splits-per-rank", splits, 1, Integer.MAX_VALUE);
        if (m % count != 0) {
            throw new UsageException(
                    "--m %s on %s ranks: expected a multiple, since all ranks have the"
                            + " same number of rows",
                    m, count);
        }
        config = config();
        ReplicaGroups all = ReplicaGroups.equal(count, 1);
        return new ProductRun(this, all, m / count, k, n, true, dtype.type(), arena);
    }

    /** The given tiles, the rest as in the example; null if none are given. */
    private Helion.Config config() {
        if (blockSizes == null && warps == null && stages == null) {
            return null;
        }
        Helion.Config example = Helion.Config.EXAMPLE;
        int[] blocks =
                blockSizes == null
                        ? new int[] {example.blockM(), example.blockN(), example.blockK()}
                        : blockSizes;
        if (blocks.length != 3) {
            throw new UsageException(
                    "--block-sizes with %s numbers: expected 3, for rows, columns and steps of K",
                    blocks.length);
        }
        return new Helion.Config(
                blocks[0],
                blocks[1],
                blocks[2],
                warps == null ? example.warps() : warps,
                stages == null ? example.stages() : stages);
    }

    @Override
    <M> SourceCall<M> prepare(At<M> at) {
        return new HelionCall<>(at, splits, at.site().helion(at, splits, config));
    }

    /** The example's comparison with the fused operator's result, element by element. */
    @Override
    boolean isRight(Deviation deviation, Matrix product, Matrix fused) {
        for (long row = 0; row < product.rows(); row++) {
            for (long col = 0; col < product.cols(); col++) {
                float expected = fused.get(row, col);
                float error = Math.abs(product.get(row, col) - expected);
                // Written so that a NaN is wrong.
                if (!(error <= TOLERANCE + TOLERANCE * Math.abs(expected))) {
                    return false;
                }
            }
        }
        return true;
    }

    @Override
    PlanSearch search(List<Integer> group) {
        return search(group, List.of(run.n()), 1, new Cut(0, splits, 0));
    }

    @Override
    String describe(int world) {
        return text(
                "all_gather_matmul, M %d, N %d, K %d, %s, %s per rank%s",
                m, n, k, run.type().label(), count(splits, "split"), tiles());
    }

    private String tiles() {
        return config == null
                ? ""
                : text(
                        ", block_sizes [%d, %d, %d], num_warps %d, num_stages %d",
                        config.blockM(),
                        config.blockN(),
                        config.blockK(),
                        config.warps(),
                        config.stages());
    }

    @Override
    String result(SourceReport report) {
        return text(
                "a_out %s, c=%s %s 1e-1 of the fused operator's result,",
                Boolean.FALSE.equals(report.judged().gatheredExact()) ? "WRONG" : "exact",
                Arrays.toString(report.shape()),
                Boolean.FALSE.equals(report.judged().seedRulePassed()) ? "BEYOND" : "within");
    }

    @Override
    void writeProblem(JsonGenerator json) throws IOException {
        json.writeNumberField("m", m);
        json.writeNumberField("n", n);
        json.writeNumberField("k", k);
        json.writeNumberField("splitsPerRank", splits);
        if (config != null) {
            RecordJson.field(
                    json,
                    "blockSizes",
                    new long[] {config.blockM(), config.blockN(), config.blockK()});
            json.writeNumberField("numWarps", config.warps());
            json.writeNumberField("numStages", config.stages());
        }
    }
}
