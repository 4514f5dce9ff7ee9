package dev.weft.cli.simulate;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.search.MachinePlans;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Engine;
import dev.weft.sim.Machine;
import dev.weft.sim.Part;
import dev.weft.sim.Prediction;
import dev.weft.sim.Scenario;
import dev.weft.sim.Simulator;
import dev.weft.sim.SpanSink;
import dev.weft.sim.TileEngine;
import dev.weft.sim.Wiring;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A problem on a machine model: makes candidates and prices them. Immutable; a call takes as long
 * as the simulator does.
 *
 * @param columns of the widest rank's product
 * @param workers compute threads of a rank, 0 for its share of the cores
 * @param slowRanks how many times as long some ranks take
 */
public record SimProblem(
        Machine machine,
        Shards shards,
        long k,
        long columns,
        DType aType,
        DType outType,
        boolean keepGathered,
        int workers,
        Map<Integer, Double> slowRanks) {

    /** Lanes beyond this many only wait for the same links. */
    private static final int MOST_DEFAULT_LANES = 8;

    /** Transfer blocks of the Ascend example. */
    private static final int ASCEND_LANES = 24;

    public SimProblem {
        slowRanks = Map.copyOf(slowRanks);
        ProblemSpec.checkBytes("A", aType, shards.totalRows(), k, shards.ranks());
        ProblemSpec.checkBytes("B", aType, k, columns, shards.ranks());
        ProblemSpec.checkBytes("C", outType, shards.totalRows(), columns, shards.ranks());
        if (!machine.engine().knows(aType)) {
            throw new UsageException(
                    "A is "
                            + aType.label()
                            + ": expected one of "
                            + Arrays.stream(DType.values())
                                    .filter(machine.engine()::knows)
                                    .map(DType::label)
                                    .collect(Collectors.joining(", "))
                            + ", for which "
                            + machine.name()
                            + " has rates");
        }
    }

    public Hosts hosts() {
        return machine.hosts(shards.ranks());
    }

    SimProblem on(Machine other) {
        return new SimProblem(
                other, shards, k, columns, aType, outType, keepGathered, workers, slowRanks);
    }

    /** Another number of rows, evenly spread. */
    SimProblem withRows(long m) {
        return new SimProblem(
                machine,
                Shards.even(m, shards.ranks()),
                k,
                columns,
                aType,
                outType,
                keepGathered,
                workers,
                slowRanks);
    }

    /**
     * Whether the machine's kernel is the Ascend example's, which has chunks and lanes of its own.
     */
    public boolean hasOwnKernel() {
        return machine.consumption() == Machine.Consumption.BY_SOURCE;
    }

    /**
     * @param lanes 0 for the machine's own number
     * @throws IllegalArgumentException where the machine cannot do that, with the reason
     */
    public SimCandidate candidate(PlanWriter algorithm, SimCut cut, int lanes) {
        Hosts hosts = hosts();
        if (algorithm == Algorithm.DIRECT && !machine.node().direct()) {
            throw new IllegalArgumentException(
                    "direct on "
                            + machine.name()
                            + ": its ranks cannot multiply rows in a peer's memory");
        }
        if (algorithm == Algorithm.DIRECT && hosts.count() > 1) {
            throw new IllegalArgumentException(
                    "direct on %s hosts of %s: expected ranks of one host, at most %s"
                            .formatted(hosts.count(), machine.name(), machine.ranksPerNode()));
        }
        int count = lanes > 0 ? lanes : lanes(algorithm, hosts);
        SimCut own =
                hasOwnKernel() && !cut.isGiven()
                        ? new SimCut(0, 0, 0, ExecutionSpec.AscendTiles.DEFAULT)
                        : cut;
        return new SimCandidate(
                algorithm,
                own,
                own.chunks(shards, k, machine.engine(), blockRows(count, hosts)),
                count);
    }

    private int lanes(PlanWriter writer, Hosts hosts) {
        if (!(writer instanceof Algorithm algorithm)) {
            return 1;
        }
        int perPeer = Math.clamp(shards.ranks() - 1, 1, MOST_DEFAULT_LANES);
        return switch (algorithm) {
            case RING, DIRECT, AUTO -> 1;
            case BIDIRECTIONAL_RING -> 2;
            case MESH_PUSH, MESH_PULL, SEQUENTIAL -> {
                if (hasOwnKernel()) {
                    yield ASCEND_LANES;
                }
                if (!coresMoveBytes()) {
                    yield perPeer;
                }
                // Whoever multiplies is idle while a sequential call gathers.
                yield algorithm == Algorithm.SEQUENTIAL ? computeWorkers(hosts) : 1;
            }
        };
    }

    /** Those of its lanes that a candidate's plan has work for. */
    public int lanesUsed(SimCandidate candidate) {
        return candidate.algorithm() instanceof Algorithm algorithm
                ? algorithm.lanes(hosts(), candidate.lanes())
                : candidate.lanes();
    }

    private boolean coresMoveBytes() {
        Wiring network = machine.network();
        return machine.node().coreGbps() > 0 || network != null && network.coreGbps() > 0;
    }

    /** Threads of a rank that multiply, or units of its engine. */
    public int computeWorkers() {
        return computeWorkers(hosts());
    }

    private int computeWorkers(Hosts hosts) {
        return switch (machine.engine()) {
            case CoreEngine cores ->
                    workers > 0 ? workers : Math.max(1, cores.cores() / hosts.size(0));
            case TileEngine tiles -> tiles.units();
        };
    }

    private long blockRows(int lanes, Hosts hosts) {
        Engine engine = machine.engine();
        int takers = engine instanceof CoreEngine ? Math.max(lanes, computeWorkers(hosts)) : lanes;
        return Cut.blockRows(shards, takers, engine.rowQuantum(), engine.blockRows());
    }

    public SimCandidate.Priced price(SimCandidate candidate) {
        return new SimCandidate.Priced(candidate, price(candidate, Part.WHOLE));
    }

    public Prediction price(SimCandidate candidate, Part part) {
        return Simulator.run(machine, scenario(candidate), part);
    }

    /** Tells {@code sink} what every rank does in the whole call. */
    void tellEveryRank(SimCandidate candidate, SpanSink sink) {
        Simulator.runEveryRank(machine, scenario(candidate), Part.WHOLE, sink);
    }

    /** Reports the spans of one rank of each class of like ranks. */
    void tellEachClass(SimCandidate candidate, SpanSink sink) {
        Simulator.run(machine, scenario(candidate), Part.WHOLE, sink);
    }

    /** What every rank does; checked where Weft has not written it. */
    List<RankPlan> plans(SimCandidate candidate) {
        List<RankPlan> plans =
                candidate.algorithm().plans(candidate.chunks(), candidate.lanes(), hosts());
        PlanChecker.checkGiven(plans, hosts());
        return plans;
    }

    private Scenario scenario(SimCandidate candidate) {
        return Scenario.of(
                        new MachinePlans(machine, candidate.algorithm()),
                        candidate.chunks(),
                        candidate.lanes(),
                        hosts(),
                        aType,
                        outType,
                        List.of(columns),
                        keepGathered,
                        workers)
                .withSlowRanks(slowRanks);
    }
}
