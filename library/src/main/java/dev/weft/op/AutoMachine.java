package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.Part;
import dev.weft.sim.Scenario;
import dev.weft.sim.Simulator;
import dev.weft.sim.Wiring;
import dev.weft.tensor.DType;
import dev.weft.tune.Here;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * The model of the machine that a group runs on: the calibrated host, the group's part of its cores
 * and, over several hosts, links whose rate and latency make the simulator agree with two small
 * gathers. Collective; only the first rank gets a model.
 */
final class AutoMachine {

    private static final long COLS = 1024;
    private static final long SMALL_ROWS = 2;
    private static final long LARGE_ROWS = 256;
    private static final int ROUNDS = 3;

    /** How fast one core moves messages: 60 MB/s took 5.5% of one in the network lab. */
    private static final double MESSAGE_GBPS = 1.1;

    private final Fabric fabric;

    AutoMachine(Fabric fabric) {
        this.fabric = fabric;
    }

    /** Null on ranks other than the first. */
    Machine measure(Gemm gemm, DType aType) {
        boolean first = fabric.rank() == 0;
        Machine host = first ? ownPart(Here.machine(gemm, aType, fabric::worked)) : null;
        if (fabric.hosts().count() == 1) {
            return host;
        }
        double smallNs = gatherNs(SMALL_ROWS);
        double largeNs = gatherNs(LARGE_ROWS);
        return first ? withNetwork(host, smallNs, largeNs) : null;
    }

    /** Other groups of the world have their part of the cores. */
    private Machine ownPart(Machine host) {
        CoreEngine engine = (CoreEngine) host.engine();
        int onHost = fabric.hosts().size(fabric.hosts().hostOf(fabric.rank()));
        double part = Math.min(1, (double) onHost / fabric.cores().sharers());
        return host.withEngine(engine.withCapacity(engine.capacity() * part));
    }

    private double gatherNs(long rows) {
        try (AllGather gather =
                AllGather.rows(
                        fabric,
                        Shards.even(rows * fabric.size(), fabric.size()),
                        COLS,
                        DType.FP32,
                        Algorithm.MESH_PUSH)) {
            double[] ns = new double[ROUNDS];
            for (int round = -1; round < ROUNDS; round++) {
                fabric.barrier();
                gather.call(gather.nextShard());
                long own = gather.timeline().elapsedNs();
                ns[Math.max(0, round)] = Arrays.stream(fabric.exchange(own)).max().orElseThrow();
            }
            Arrays.sort(ns);
            return ns[ROUNDS / 2];
        }
    }

    private Machine withNetwork(Machine host, double smallNs, double largeNs) {
        double overheadUs = host.overheads().callUs() + host.overheads().wakeUs();
        double latencyUs = Math.max(1, smallNs / 1e3 - overheadUs) / 2;
        double slow = 1e-4;
        double fast = 1e3;
        // The time falls as the rate grows: halve the range, by ratio, until it is narrow.
        while (fast / slow > 1.01) {
            double rate = Math.sqrt(slow * fast);
            if (simulatedNs(withLinks(host, latencyUs, rate)) > largeNs) {
                slow = rate;
            } else {
                fast = rate;
            }
        }
        return withLinks(host, latencyUs, fast);
    }

    private double simulatedNs(Machine machine) {
        Hosts hosts = fabric.hosts();
        Shards shards = Shards.even(LARGE_ROWS * hosts.ranks(), hosts.ranks());
        CoreEngine engine = (CoreEngine) machine.engine();
        Chunks chunks =
                Chunks.automatic(shards, COLS, (int) engine.rowQuantum(), engine.blockRows());
        Scenario scenario =
                new Scenario(
                        Algorithm.MESH_PUSH,
                        false,
                        chunks,
                        1,
                        hosts,
                        DType.FP32,
                        DType.FP32,
                        List.of(),
                        true,
                        1,
                        Map.of());
        return Simulator.run(machine, scenario, Part.GATHER).ns();
    }

    private Machine withLinks(Machine host, double latencyUs, double gbps) {
        Wiring links =
                new Wiring(
                        Wiring.Topology.SWITCH,
                        List.of(),
                        latencyUs,
                        gbps,
                        0,
                        0,
                        true,
                        false,
                        MESSAGE_GBPS,
                        false);
        return host.withNetwork(fabric.hosts().size(0), links);
    }
}
