package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.Wiring;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import dev.weft.tune.HostModel;
import dev.weft.tune.Quantiles;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * The model of the machine that a group runs on: the calibrated host, the group's share of its
 * cores and, over several hosts, links with the latency, the cost of a chunk and the rate that make
 * the simulator agree with three small gathers. Collective; only the first rank gets a model.
 */
record AutoMachine(Fabric fabric) {

    /**
     * Rows of one kilobyte. This many, in one chunk or in one chunk each, take almost no time to
     * send.
     */
    private static final int SMALL_ROWS = 24;

    private static final int LARGE_ROWS = 1024;
    private static final long COLS = 256;
    private static final int ROUNDS = 3;

    /** How fast one core moves messages: 60 MB/s used 5.5% of a core in the network lab. */
    private static final double MESSAGE_GBPS = 1.1;

    /** Null on ranks other than the first. */
    Machine measure(Gemm gemm, DType aType) {
        boolean first = fabric.rank() == 0;
        Machine host = first ? ownShare(HostModel.machine(gemm, aType, fabric::worked)) : null;
        if (fabric.hosts().count() == 1) {
            return host;
        }
        double smallNs = gatherNs(SMALL_ROWS, SMALL_ROWS);
        double manyNs = gatherNs(SMALL_ROWS, 1);
        double largeNs = gatherNs(LARGE_ROWS, LARGE_ROWS);
        return first ? withNetwork(host, smallNs, manyNs, largeNs) : null;
    }

    /** Leaves the other groups of the world their share of the cores. */
    private Machine ownShare(Machine host) {
        CoreEngine engine = (CoreEngine) host.engine();
        int onHost = fabric.hosts().size(fabric.hosts().hostOf(fabric.rank()));
        double share = Math.min(1, (double) onHost / Transport.of(fabric).cores().sharers());
        return host.withEngine(engine.withCapacity(engine.capacity() * share));
    }

    private double gatherNs(long rows, long chunkRows) {
        Shards shards = Shards.even(rows * fabric.size(), fabric.size());
        try (AllGather<Matrix> gather =
                AllGather.rows(fabric, shards, COLS, DType.FP32, Algorithm.MESH_PUSH, chunkRows)) {
            double[] ns = new double[ROUNDS];
            for (int round = -1; round < ROUNDS; round++) {
                fabric.barrier();
                gather.call(gather.nextShard());
                long own = gather.timeline().elapsedNs();
                ns[Math.max(0, round)] = Arrays.stream(fabric.exchange(own)).max().orElseThrow();
            }
            return Quantiles.median(ns);
        }
    }

    private Machine withNetwork(Machine host, double smallNs, double manyNs, double largeNs) {
        double overheadUs = host.overheads().callUs() + host.overheads().wakeUs();
        double latencyUs = Math.max(1, smallNs / 1e3 - overheadUs) / 2;
        // Each chunk goes to every other host.
        int chunks = (SMALL_ROWS - 1) * (fabric.hosts().count() - 1);
        double chunkNs = Math.max(0, manyNs - smallNs) / chunks;
        double slow = 1e-4;
        double fast = 1e3;
        // The time falls as the rate grows: bisect the range, by ratio, until it is narrow.
        while (fast / slow > 1.01) {
            double rate = Math.sqrt(slow * fast);
            if (simulatedNs(withLinks(host, latencyUs, chunkNs, rate)) > largeNs) {
                slow = rate;
            } else {
                fast = rate;
            }
            fabric.worked();
        }
        return withLinks(host, latencyUs, chunkNs, fast);
    }

    private double simulatedNs(Machine machine) {
        Hosts hosts = fabric.hosts();
        Problem gather =
                new Problem(
                        Shards.even((long) LARGE_ROWS * hosts.ranks(), hosts.ranks()),
                        COLS,
                        List.of(),
                        DType.FP32,
                        DType.FP32,
                        true,
                        1,
                        1,
                        new Cut(LARGE_ROWS, 0, 0),
                        hosts,
                        Map.of(),
                        null);
        PlanSearch search = new PlanSearch(machine, gather);
        return search.price(search.candidate(Algorithm.MESH_PUSH), View.COMM_ONLY).ns();
    }

    private Machine withLinks(Machine host, double latencyUs, double chunkNs, double gbps) {
        Wiring links =
                new Wiring(
                        Wiring.Topology.SWITCH,
                        List.of(),
                        latencyUs,
                        gbps,
                        0,
                        chunkNs * gbps,
                        true,
                        false,
                        MESSAGE_GBPS,
                        false);
        return host.withNetwork(fabric.hosts().size(0), links);
    }
}
