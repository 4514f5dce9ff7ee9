package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** One of each class of ranks gives what all 64 give. */
class SymmetricRanksTest {

    private static final int RANKS = 64;

    /** Where ranks share a bus or cores, a class has its view of them: equal but for rounding. */
    private static final double ROUNDING = 1e-9;

    @Test
    void nodesOfEight() {
        for (Wiring.Topology network : Wiring.Topology.values()) {
            int classes = network == Wiring.Topology.TORUS ? 8 * 2 : 8;
            Engine engine = network.ordinal() % 2 == 0 ? tiles() : cores();
            Machine machine = machine(engine, wires(Wiring.Topology.MESH, 8), wires(network, 8));
            assertClasses(classes, machine, hostsOfEight());
        }
        for (Wiring.Topology node : Wiring.Topology.values()) {
            Machine machine = machine(cores(), wires(node, 8), wires(Wiring.Topology.SWITCH, 8));
            assertClasses(8, machine, hostsOfEight());
        }
    }

    @Test
    void oneNode() {
        for (Wiring.Topology node : Wiring.Topology.values()) {
            int classes = node == Wiring.Topology.TORUS ? 8 : 1;
            Engine engine = node.ordinal() % 2 == 0 ? tiles() : cores();
            assertClasses(classes, machine(engine, wires(node, RANKS), null), Hosts.one(RANKS));
        }
    }

    @Test
    void everyRankApart() {
        for (Wiring.Topology network : Wiring.Topology.values()) {
            int classes = network == Wiring.Topology.TORUS ? 8 : 1;
            Machine machine =
                    machine(tiles(), wires(Wiring.Topology.BUS, 1), wires(network, RANKS));
            assertClasses(classes, machine, Hosts.apart(RANKS));
        }
    }

    @Test
    void unlikeRanksAreAllSimulated() {
        Machine machine = machine(tiles(), wires(Wiring.Topology.SWITCH, RANKS), null);
        long[] rows = evenRows();
        rows[17]++;
        TestCall uneven = scenario(Algorithm.RING, false, Hosts.one(RANKS), rows, Map.of());
        assertEquals(
                RANKS, Simulator.run(machine, uneven.on(machine), View.PIPELINED).simulatedRanks());
        TestCall slow =
                scenario(Algorithm.RING, false, Hosts.one(RANKS), evenRows(), Map.of(3, 2.0));
        assertEquals(
                RANKS, Simulator.run(machine, slow.on(machine), View.PIPELINED).simulatedRanks());
        Machine network =
                machine(
                        tiles(),
                        wires(Wiring.Topology.SWITCH, 8),
                        wires(Wiring.Topology.SWITCH, 8));
        TestCall hosts = scenario(Algorithm.RING, false, Hosts.of(30, 34), evenRows(), Map.of());
        assertEquals(
                RANKS, Simulator.run(network, hosts.on(network), View.PIPELINED).simulatedRanks());
    }

    /** The link between two ranks that both turn to: who comes first in rank order owns it. */
    @Test
    void halfDuplexLinksAreNotAlike() {
        Wiring mesh = wires(Wiring.Topology.MESH, RANKS);
        Wiring half =
                new Wiring(
                        mesh.topology(),
                        List.of(),
                        mesh.latencyUs(),
                        mesh.gbps(),
                        0,
                        0,
                        false,
                        false,
                        0,
                        false);
        TestCall ring = scenario(Algorithm.RING, false, Hosts.one(RANKS), evenRows(), Map.of());
        Machine machine = machine(tiles(), half, null);
        Prediction call = Simulator.run(machine, ring.on(machine), View.PIPELINED);
        assertEquals(RANKS, call.simulatedRanks());
    }

    private static void assertClasses(int classes, Machine machine, Hosts hosts) {
        for (Algorithm algorithm : Algorithm.values()) {
            boolean cannot = algorithm == Algorithm.DIRECT && hosts.count() > 1;
            if (algorithm != Algorithm.AUTO && !cannot) {
                assertClasses(classes, machine, scenario(algorithm, false, hosts));
            }
        }
        assertClasses(classes, machine, scenario(Algorithm.RING, true, hosts));
    }

    private static void assertClasses(int classes, Machine machine, TestCall scenario) {
        String name =
                machine
                        + ", "
                        + scenario.writer().label()
                        + (scenario.writer() instanceof Algorithm ? "" : " ping-pong");
        Prediction some = Simulator.run(machine, scenario.on(machine), View.PIPELINED);
        Prediction every =
                Simulator.runEveryRank(machine, scenario.on(machine), View.PIPELINED, null);
        assertEquals(classes, some.simulatedRanks(), name);
        assertEquals(RANKS, every.simulatedRanks(), name);
        assertEquals(every.transfers(), some.transfers() * (RANKS / classes), name);
        assertNs(every.ns(), some.ns(), name);
        assertNs(every.arrivedNs(), some.arrivedNs(), name);
        assertNs(every.bounds().pathNs(), some.bounds().pathNs(), name);
        assertNs(every.bounds().linkNs(), some.bounds().linkNs(), name);
        assertNs(every.bounds().computeNs(), some.bounds().computeNs(), name);
    }

    private static void assertNs(double every, double some, String name) {
        assertEquals(every, some, every * ROUNDING, name);
    }

    private static TestCall scenario(Algorithm algorithm, boolean pingPong, Hosts hosts) {
        return scenario(algorithm, pingPong, hosts, evenRows(), Map.of());
    }

    private static TestCall scenario(
            Algorithm algorithm,
            boolean pingPong,
            Hosts hosts,
            long[] rows,
            Map<Integer, Double> slow) {
        return new TestCall(
                pingPong ? Algorithm.pingPongRing() : algorithm,
                Chunks.byRows(Shards.of(rows), 64, 8, 16),
                3,
                hosts,
                DType.BF16,
                DType.BF16,
                List.of(48L),
                !pingPong,
                0,
                slow);
    }

    private static long[] evenRows() {
        long[] rows = new long[RANKS];
        Arrays.fill(rows, 24);
        return rows;
    }

    private static Hosts hostsOfEight() {
        return Hosts.of(8, 8, 8, 8, 8, 8, 8, 8);
    }

    private static Engine tiles() {
        return new TileEngine(3, 16, 16, Map.of(DType.BF16, 37.0), 0.1);
    }

    private static Engine cores() {
        CoreEngine.Costs costs = new CoreEngine.Costs(31, 0.01, 0.02, 0.03);
        return new CoreEngine(12, 10, Map.of(DType.BF16, costs), 0.1, 4, 16);
    }

    private static Wiring wires(Wiring.Topology topology, int ends) {
        return new Wiring(
                topology,
                topology == Wiring.Topology.TORUS ? torus(ends) : List.of(),
                0.7,
                1.3,
                0.9,
                100,
                true,
                false,
                2,
                true);
    }

    private static List<Integer> torus(int ends) {
        return ends == RANKS ? List.of(8, 8) : ends == 8 ? List.of(2, 4) : List.of(ends);
    }

    private static Machine machine(Engine engine, Wiring node, Wiring network) {
        return new Machine(
                "classes",
                "",
                List.of(),
                engine,
                new Machine.Memory(0, 0),
                new Machine.Overheads(3, 0.1, 0.2, 0.3),
                Machine.Consumption.AS_PLANNED,
                network == null ? 0 : RANKS,
                node,
                network,
                Machine.Copies.PLAIN);
    }
}
