package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.compat.ProductRun.At;
import dev.weft.cli.options.SourceOptions;
import dev.weft.cli.simulate.SimRules;
import dev.weft.compat.RingAllGatherMatmul;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.gemm.Deviation;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.search.PlanSearch;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft ring}: the ring tutorial's runner; every rank judges its own output. */
@Command(
        name = "ring",
        description =
                "The all-gather + matmul ring tutorial: every rank goes once round the ring,"
                        + " compares its output [R, m, N_local] with a reference product and prints"
                        + " rank, shape, max_abs_err, rel_err and PASS (rel_err under 0.01) or FAIL."
                        + " The ring's time stands beside that of gather, then product.",
        footer = {
            "",
            "Examples:",
            "  ./weft ring -n 16 --lnc 2",
            "  ./weft ring -n 4 --launcher processes --json ring.json",
            "  ./weft ring -n 4 --launcher mpi --report ring.html",
            "  ./weft ring -r sim -v trn2 -n 16 --lnc 2",
            "  ./weft ring -r cuda -n 4 --m 100 --k 768 --n-local 96 --dtype fp16",
            "  ./weft launch -n 4 -- ./weft ring --launcher joined",
            "",
            "Exit codes: 0 all ranks pass, 1 failed, 2 wrong usage."
        })
public final class RingCommand extends ProductCommand {

    private static final double MAX_REL_ERR = 0.01;

    @Option(
            names = "--n-local",
            paramLabel = "N",
            description = "Columns of B on each rank (default: 512; of --m 128, of --k 2048).")
    Long nLocal;

    @Mixin SourceOptions source;

    @Option(
            names = "--lnc",
            paramLabel = "L",
            description = "Logical-core programs per rank, 1 or 2 (default: ${DEFAULT-VALUE}).")
    int lnc = 1;

    public RingCommand() {
        super(4, 2, 5);
    }

    @Override
    DType type() {
        return source.type();
    }

    @Override
    PlanWriter algorithm() {
        return Algorithm.slicedRing(lnc, 1, false);
    }

    @Override
    ProductRun run(int count, Arena arena) {
        SourceOptions.lnc(lnc);
        long n = SourceOptions.size("--n-local", nLocal, 512) * count;
        return run(
                count,
                ReplicaGroups.equal(count, 1),
                source.m(128),
                source.k(2048),
                n,
                false,
                arena);
    }

    @Override
    public SourceCall<Matrix> onHost(At<Matrix, SourceSite.Host> at) {
        ProductRun run = at.run();
        return call(at, RingAllGatherMatmul.prepare(at.group(), run.m(), run.type(), at.b(), lnc));
    }

    @Override
    public SourceCall<DeviceMatrix> onDevice(At<DeviceMatrix, SourceSite.Device> at) {
        ProductRun run = at.run();
        Gpu gpu = at.site().gpu();
        return call(
                at, RingAllGatherMatmul.prepare(at.group(), gpu, run.m(), run.type(), at.b(), lnc));
    }

    private <M> SourceCall<M> call(At<M, ? extends SourceSite<M>> at, RingAllGatherMatmul<M> ring) {
        at.place(ring.operator());
        long[] shape = {at.run().ranks(), at.run().m(), at.run().cols(0)};
        return at.call(ring.operator(), new SourceCall.Layout(shape, "", lnc), ring::close);
    }

    @Override
    public boolean isRight(Deviation deviation, Matrix product, Matrix unfused) {
        return deviation.relErr() < MAX_REL_ERR;
    }

    @Override
    public boolean looksAtEveryRow() {
        return true;
    }

    @Override
    PlanSearch search(ProductRun run) {
        return PlanSearch.ofSlicedRing(
                SimRules.machine(mode.machine, lnc),
                run.shards(),
                run.k(),
                run.cols(0),
                run.type(),
                lnc,
                1,
                true);
    }

    @Override
    String describe(ProductRun run) {
        return text(
                "a ring, [%d x %d] x [%d x %d] each, %s, lnc %d",
                run.m(), run.k(), run.k(), run.cols(0), run.type().label(), lnc);
    }

    @Override
    String line(SourceReport report) {
        return text(
                "[rank %d] shape=%s max_abs_err=%.6g rel_err=%.6g %s",
                report.rank(),
                Arrays.toString(report.shape()),
                report.judged().maxAbsErr(),
                report.judged().relErr(),
                report.passed() ? "PASS" : "FAIL");
    }

    @Override
    void writeProblem(ProductRun run, JsonGenerator json) throws IOException {
        json.writeNumberField("m", run.m());
        json.writeNumberField("k", run.k());
        json.writeNumberField("nLocal", run.cols(0));
        json.writeNumberField("lnc", lnc);
    }
}
