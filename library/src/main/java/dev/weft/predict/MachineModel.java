package dev.weft.predict;

import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.MachinePlans;
import dev.weft.sim.Engine;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import dev.weft.sim.Prediction;
import dev.weft.sim.Scenario;
import dev.weft.sim.Simulator;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.List;
import java.util.Map;

/**
 * A model of a machine, which predicts how long calls would take there. It simulates the plans that
 * executors run. Immutable and thread-safe.
 */
public final class MachineModel {

    private final Machine machine;

    private MachineModel(Machine machine) {
        this.machine = machine;
    }

    /**
     * The model with this name: one of {@link #names}, {@code here} for this machine as {@code weft
     * calibrate} measured it, or the path of a model file, which ends in {@code .json}.
     *
     * @throws IllegalArgumentException if there is none, or its file is invalid
     */
    public static MachineModel of(String nameOrPath) {
        return new MachineModel(Machines.of(nameOrPath));
    }

    /** The models that come with Weft. */
    public static List<String> names() {
        return Machines.names();
    }

    public String name() {
        return machine.name();
    }

    /** A description in one line. */
    public String description() {
        return machine.description();
    }

    /** How {@code ranks} ranks are placed on the machine's nodes. */
    public Hosts hosts(int ranks) {
        return machine.hosts(ranks);
    }

    /**
     * How shards of {@code k} columns are cut on this machine by default.
     *
     * @param lanes communication workers per rank
     */
    public Chunks chunks(Shards shards, long k, int lanes) {
        Engine engine = machine.engine();
        long blockRows = Cut.blockRows(shards, lanes, engine.rowQuantum(), engine.blockRows());
        return Chunks.automatic(shards, k, Math.toIntExact(engine.rowQuantum()), blockRows);
    }

    /**
     * How long a call would take. If ranks do the same, only one of each kind is simulated.
     *
     * @param algorithm any but {@link dev.weft.plan.Algorithm#AUTO}
     * @param chunks the chunks of A's shards, from {@link #chunks} or the caller's own
     * @param lanes communication workers per rank
     * @param dtype the type of A, B and C
     * @param n columns of B
     * @throws IllegalArgumentException if the machine cannot do this
     * @throws dev.weft.plan.PlanException if the plans are wrong
     */
    public PredictedCall predict(
            GatherWriter algorithm, Chunks chunks, int lanes, DType dtype, long n) {
        Hosts hosts = hosts(chunks.shards().ranks());
        GatherWriter guarded = PlanChecker.guarded(algorithm);
        GatherRequest request = new GatherRequest(chunks, lanes, hosts, n);
        List<StepPlan> plans = MachinePlans.of(machine, guarded, request);
        // Of two ranks, one lacks rows that the other has, unless there are none.
        boolean inPlace = plans.stream().limit(2).anyMatch(StepPlan::readsPeersRows);
        if (inPlace && !machine.node().direct()) {
            throw new IllegalArgumentException(
                    "%s on %s: its ranks cannot multiply rows in a peer's memory"
                            .formatted(algorithm.label(), machine.name()));
        }
        Scenario scenario =
                new Scenario(
                        plans,
                        request.placement(),
                        chunks.total(),
                        guarded.isSymmetric(),
                        hosts,
                        dtype,
                        dtype,
                        List.of(n),
                        false,
                        0,
                        Map.of());
        Prediction whole = Simulator.run(machine, scenario, View.PIPELINED);
        return new PredictedCall(
                whole.ns(),
                Simulator.run(machine, scenario, View.COMM_ONLY).ns(),
                Simulator.run(machine, scenario, View.COMPUTE_ONLY).ns(),
                whole.bounds().ns());
    }

    /**
     * How long a call would take on a machine, until its slowest rank is done.
     *
     * @param ns the whole call
     * @param gatherNs only its transfers
     * @param productNs only its products
     * @param boundNs a lower bound for any order of the same transfers and products
     */
    public record PredictedCall(double ns, double gatherNs, double productNs, double boundNs) {}
}
