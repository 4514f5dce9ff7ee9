package dev.weft.compat.command;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.compat.RingAllGatherMatmul;
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
import java.util.StringJoiner;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft ring}: the ring tutorial's runner; every rank checks its own output. */
@Command(
        name = "ring",
        description =
                "The all-gather + matmul ring tutorial: every rank goes once round the"
                        + " ring, compares its output [R, m, N_local] with a reference product and"
                        + " prints rank, shape, max_abs_err, rel_err and PASS (rel_err under 0.01)"
                        + " or FAIL. It also prints the ring's time and that of gather, then"
                        + " product.",
        footer = {
            "",
            "Without -n, NEURONCORE_NUM_DEVICES says how many ranks there are. Without --lnc,",
            "NEURON_LOGICAL_NC_CONFIG does, or --lnc in NEURON_CC_FLAGS.",
            "",
            "Examples:",
            "  ./weft ring -n 16 --lnc 2",
            "  NEURON_LOGICAL_NC_CONFIG=2 NEURONCORE_NUM_DEVICES=16 ./weft ring",
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

    /** What the tutorial's own variables say. */
    NeuronEnvironment environment = new NeuronEnvironment(System.getenv());

    private int lnc;
    private boolean ranksTaken;

    public RingCommand() {
        super("weft.ring/1", 4, 2, 5);
    }

    @Override
    OptionalInt ranksOtherwise() {
        OptionalInt ranks = environment.ranks();
        ranksTaken = ranks.isPresent();
        return ranks;
    }

    private OptionalInt lncOfEnvironment() {
        boolean given = spec.commandLine().getParseResult().hasMatchedOption("--lnc");
        return given ? OptionalInt.empty() : environment.lnc();
    }

    /** The variables that were used; empty if there were none. */
    private String taken() {
        StringJoiner said = new StringJoiner(", ", " (", ")").setEmptyValue("");
        if (ranksTaken) {
            said.add("-n %s by %s".formatted(run.ranks(), environment.ranksName()));
        }
        lncOfEnvironment()
                .ifPresent(
                        lnc -> said.add("--lnc %s by %s".formatted(lnc, environment.lncNames())));
        return said.toString();
    }

    @Override
    GatherWriter algorithm(List<Integer> group) {
        return Algorithm.slicedRing(lnc, 1, false);
    }

    @Override
    ProductRun run(int count, Arena arena) {
        lnc = lncOfEnvironment().orElseGet(source::lnc);
        ReplicaGroups all = ReplicaGroups.equal(count, 1);
        long n = SourceOptions.size("--n-local", nLocal, 512) * count;
        return new ProductRun(
                this, all, source.m(128), source.k(2048), n, false, source.type(), arena);
    }

    @Override
    <M> SourceCall<M> prepare(At<M> at) {
        RingAllGatherMatmul<M> ring =
                RingAllGatherMatmul.prepare(
                        at.site().place(), at.group(), run.m(), run.type(), at.b(), lnc);
        at.place(ring.operator());
        long[] shape = {run.ranks(), run.m(), run.cols()};
        return at.call(ring.operator(), shape, "", ring::close);
    }

    @Override
    boolean isRight(Deviation deviation, Matrix product, Matrix fused) {
        return deviation.relErr() < MAX_REL_ERR;
    }

    @Override
    boolean looksAtEveryRow() {
        return true;
    }

    @Override
    PlanSearch search(List<Integer> group) {
        return slicedRing(group, lnc, 1, true);
    }

    @Override
    String describe(int world) {
        return text(
                "a ring, [%d x %d] x [%d x %d] each, %s, lnc %d%s",
                run.m(), run.k(), run.k(), run.cols(), run.type().label(), lnc, taken());
    }

    @Override
    String verdict(SourceReport report) {
        return passOrFail(report);
    }

    @Override
    void writeProblem(JsonGenerator json) throws IOException {
        json.writeNumberField("m", run.m());
        json.writeNumberField("k", run.k());
        json.writeNumberField("nLocal", run.cols());
        json.writeNumberField("lnc", lnc);
    }
}
