package dev.weft.compat.command;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.GroupsOption;
import dev.weft.compat.Fgcc;
import dev.weft.compat.FgccConfig;
import dev.weft.compat.FgccResult;
import dev.weft.compat.command.ProductRun.At;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.gemm.Deviation;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.search.PlanSearch;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.Function;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft fgcc}: fine-grained all-gather + matmul, verified on every rank and timed. */
@Command(
        name = "fgcc",
        description =
                "FGCC's allgather_compute_matmul: runs it on all ranks, prints path and"
                        + " shape, its times and those of gather, then product, and verifies every"
                        + " rank.",
        footer = {
            "",
            "Examples:",
            "  ./weft fgcc --tp-degree 4 --num-groups 2 --force-hbm-cc",
            "  ./weft fgcc -n 4 --lnc 2 --force-hbm",
            "  ./weft fgcc -n 8 --groups 2 --m 512 --k 2048 --n-global 2048",
            "  ./weft fgcc -n 8 --replica-groups 0,2,4,6/1,3,5,7",
            "  ./weft fgcc -n 4 --lnc 2 --launcher processes --report fgcc.html",
            "  ./weft fgcc -r cuda -n 4 --lnc 2",
            "  ./weft fgcc -n 64 --lnc 2 --m 512 --json -",
            "  ./weft fgcc -r sim -v trn2 -n 64 --lnc 2 --m 512",
            "",
            "Exit codes: 0 all ranks pass, 1 failed, 2 wrong usage."
        })
public final class FgccCommand extends ProductCommand {

    private static final double TOLERANCE = 1e-2;

    @Mixin SourceOptions source;

    @Mixin DegreeOption degree;

    @Mixin GroupsOption groups;

    @Option(
            names = {"--force-hbm", "--force-hbm-cc"},
            description = "force_hbm_cc: always the HBM path.")
    boolean forceHbm;

    @Option(
            names = "--on-chip-bytes",
            paramLabel = "BYTES",
            description = "On-chip memory, which decides the path (default: 25165824, trn2's).")
    long onChipBytes = FgccConfig.TRN2_ON_CHIP_BYTES;

    @Option(
            names = {"--n-global", "--n"},
            paramLabel = "N",
            description =
                    "Columns of B on all ranks of a group together"
                            + " (default: 1024; of --m 256, of --k 1024).")
    Long n;

    private int lnc;
    private FgccConfig config;

    public FgccCommand() {
        super("weft.fgcc/2", 4, 2, 5);
    }

    @Override
    GatherWriter algorithm(List<Integer> group) {
        return Algorithm.slicedRing(lnc, channels(group), path(group) == Fgcc.Path.HBM);
    }

    private int channels(List<Integer> group) {
        return config.channels(group.size());
    }

    private Fgcc.Path path(List<Integer> group) {
        return config.path(
                group.size(),
                run.m(),
                run.k(),
                run.cols(group.getFirst()),
                run.type(),
                run.type(),
                forceHbm);
    }

    @Override
    OptionalInt ranksOtherwise() {
        return degree.ranks(groups);
    }

    @Override
    ProductRun run(int count, Arena arena) {
        lnc = source.lnc();
        config = new FgccConfig(lnc, onChipBytes);
        ReplicaGroups lists = degree.check(groups.in(count));
        for (List<Integer> group : lists.groups()) {
            // Before a simulation too, which prepares nothing.
            if (group.size() % 2 != 0) {
                throw new UsageException(
                        "tp_degree %s: expected an even number of ranks in each group",
                        group.size());
            }
        }
        return new ProductRun(
                this,
                lists,
                source.m(256),
                source.k(1024),
                SourceOptions.size("--n-global", n, 1024),
                false,
                source.type(),
                arena);
    }

    @Override
    <M> SourceCall<M> prepare(At<M> at) {
        Fgcc<M> fgcc =
                Fgcc.prepare(
                        at.site().place(),
                        at.world(),
                        run.m(),
                        run.k(),
                        run.type(),
                        at.b(),
                        run.groups(),
                        forceHbm,
                        config);
        at.place(fgcc.operator());
        M lhs = at.site().put(at.shard());
        at.world().barrier();
        FgccResult<M> result = fgcc.call(lhs);
        return at.call(fgcc.operator(), result.shape(), result.path().name(), fgcc::close);
    }

    /** {@code |a - b| <= 1e-2 + 1e-2 max |b|}. */
    @Override
    boolean isRight(Deviation deviation, Matrix product, Matrix fused) {
        return deviation.maxAbsErr() <= TOLERANCE + TOLERANCE * deviation.maxAbsExpected();
    }

    @Override
    PlanSearch search(List<Integer> group) {
        return slicedRing(group, lnc, channels(group), path(group) == Fgcc.Path.SBUF);
    }

    /** Like {@code 4}, or {@code 2/4} if groups differ. */
    private String each(Function<List<Integer>, Object> what) {
        return run.groups().groups().stream()
                .map(group -> what.apply(group).toString())
                .distinct()
                .collect(Collectors.joining("/"));
    }

    @Override
    String describe(int world) {
        String channels = each(this::channels);
        return text(
                "%s%s, tp_degree %s, lnc %d, %s, path %s%s, [%d x %d] x [%d x %d], %s",
                count(run.groups().count(), "group"),
                run.idle(world),
                each(List::size),
                lnc,
                channels.equals("1") ? "1 channel" : channels + " channels",
                each(this::path),
                forceHbm ? " (forced)" : "",
                run.m() * run.ranks(),
                run.k(),
                run.k(),
                run.n(),
                run.type().label());
    }

    @Override
    void writeProblem(JsonGenerator json) throws IOException {
        json.writeNumberField("tpDegree", run.ranks());
        json.writeNumberField("numGroups", run.groups().count());
        json.writeStringField("replicaGroups", run.groups().toString());
        json.writeNumberField("lnc", lnc);
        json.writeNumberField("channels", channels(run.largest()));
        json.writeNumberField("onChipBytes", onChipBytes);
        json.writeBooleanField("forceHbmCc", forceHbm);
        json.writeNumberField("m", run.m());
        json.writeNumberField("k", run.k());
        json.writeNumberField("n", run.n());
    }
}
