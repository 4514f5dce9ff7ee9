package dev.weft.sim;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * A machine whose times can be added up in the head, and calls on it. A block of 4 rows, with K = 8
 * and two bytes an element, takes a link {@value #CHUNK_NS} ns, and a unit or a core {@value
 * #TILE_NS} ns for 4 columns of C. A call starts at {@value #START_NS} ns, and a chunk is known at
 * its destination {@value #AFTER_NS} ns after its last byte has left, {@value #LATENCY_NS} of them
 * for each link on its way.
 */
final class Toy {

    static final double START_NS = 5000;
    static final double CHUNK_NS = 1000;
    static final double TILE_NS = 100;
    static final double LATENCY_NS = 200;
    static final double AFTER_NS = 250;

    static final long ROWS = 4;
    static final long COLS = 4;

    private static final long K = 8;
    private static final double LINK_GBPS = ROWS * K * 2 / CHUNK_NS;
    private static final double GFLOPS = 2 * ROWS * COLS * K / TILE_NS;

    private Toy() {}

    static TileEngine tiles(int units) {
        return new TileEngine(units, ROWS, COLS, Map.of(DType.FP16, GFLOPS), 0);
    }

    static CoreEngine cores(int cores, double capacity) {
        CoreEngine.Costs costs = new CoreEngine.Costs(GFLOPS, 0, 0, 0);
        return new CoreEngine(cores, capacity, Map.of(DType.FP16, costs), 0, ROWS, ROWS);
    }

    static Wiring wires(Wiring.Topology topology) {
        return wires(topology, List.of(), true, 0);
    }

    static Wiring halfDuplex(Wiring.Topology topology) {
        return wires(topology, List.of(), false, 0);
    }

    static Wiring torus(Integer... sizes) {
        return wires(Wiring.Topology.TORUS, List.of(sizes), true, 0);
    }

    /** A bus that never limits; one core copies a chunk in the time a link takes. */
    static Wiring copies() {
        return new Wiring(
                Wiring.Topology.BUS,
                List.of(),
                LATENCY_NS / 1e3,
                1e6 * LINK_GBPS,
                0,
                0,
                true,
                false,
                LINK_GBPS,
                true);
    }

    private static Wiring wires(
            Wiring.Topology topology, List<Integer> torus, boolean duplex, double rampBytes) {
        return new Wiring(
                topology,
                torus,
                LATENCY_NS / 1e3,
                LINK_GBPS,
                0,
                rampBytes,
                duplex,
                false,
                0,
                false);
    }

    /** As many bytes more as a chunk has. */
    static Wiring ramped(Wiring.Topology topology) {
        return wires(topology, List.of(), true, ROWS * K * 2);
    }

    /** One transfer alone gets half of a link. */
    static Wiring inTwoLanes(Wiring.Topology topology) {
        return new Wiring(
                topology,
                List.of(),
                LATENCY_NS / 1e3,
                LINK_GBPS,
                LINK_GBPS / 2,
                0,
                true,
                false,
                0,
                false);
    }

    static Machine machine(Engine engine, Wiring node) {
        return machine(engine, node, null);
    }

    /** A network needs nodes of some size, which the scenario's hosts overrule. */
    static Machine machine(Engine engine, Wiring node, Wiring network) {
        return new Machine(
                "toy",
                "",
                List.of(),
                engine,
                new Machine.Memory(0, 0),
                new Machine.Overheads(START_NS / 1e3, 0, (AFTER_NS - LATENCY_NS) / 1e3, 0),
                Machine.Consumption.AS_PLANNED,
                network == null ? 0 : 8,
                node,
                network,
                Machine.Copies.PLAIN);
    }

    private static Machine with(
            Machine machine, Machine.Overheads overheads, Machine.Consumption consumption) {
        return new Machine(
                machine.name(),
                machine.description(),
                machine.sources(),
                machine.engine(),
                machine.memory(),
                overheads,
                consumption,
                machine.ranksPerNode(),
                machine.node(),
                machine.network(),
                machine.copies());
    }

    static Machine withWake(Machine machine, double wakeNs) {
        Machine.Overheads old = machine.overheads();
        Machine.Overheads waking =
                new Machine.Overheads(old.callUs(), old.transferUs(), old.signalUs(), wakeNs / 1e3);
        return with(machine, waking, machine.consumption());
    }

    static Machine bySource(Machine machine) {
        return with(machine, machine.overheads(), Machine.Consumption.BY_SOURCE);
    }

    /** Chunks and blocks of 4 rows, and 4 columns of C. */
    static TestCall call(Algorithm algorithm, int lanes, long... rows) {
        return call(algorithm, lanes, Hosts.one(rows.length), COLS, rows);
    }

    static TestCall call(Algorithm algorithm, int lanes, Hosts hosts, long n, long... rows) {
        return new TestCall(
                algorithm,
                Chunks.byRows(Shards.of(rows), K, ROWS, ROWS),
                lanes,
                hosts,
                DType.FP16,
                DType.FP32,
                List.of(n),
                false,
                0,
                Map.of());
    }

    static TestCall pingPong(long n, long... rows) {
        TestCall ring = call(Algorithm.RING, 1, Hosts.one(rows.length), n, rows);
        return new TestCall(
                Algorithm.pingPongRing(),
                ring.chunks(),
                1,
                ring.hosts(),
                DType.FP16,
                DType.FP32,
                ring.columns(),
                false,
                0,
                Map.of());
    }

    /** A ring through two buffers in slices of 4 rows. */
    static TestCall sliced(int programs, int lanes, boolean byLane, int ranks, long n) {
        long[] rows = new long[ranks];
        Arrays.fill(rows, ROWS * programs * lanes);
        TestCall ring = call(Algorithm.RING, lanes, Hosts.one(ranks), n, rows);
        return new TestCall(
                Algorithm.slicedRing(programs, lanes, byLane),
                ring.chunks(),
                lanes,
                ring.hosts(),
                DType.FP16,
                DType.FP32,
                ring.columns(),
                false,
                0,
                Map.of());
    }

    static TestCall keepingGathered(TestCall scenario) {
        return with(scenario, scenario.chunks(), true, Map.of());
    }

    static TestCall withSlow(TestCall scenario, int rank, double factor) {
        return with(scenario, scenario.chunks(), false, Map.of(rank, factor));
    }

    static TestCall cut(TestCall scenario, long chunkRows, long blockRows) {
        Chunks chunks = Chunks.byRows(scenario.chunks().shards(), K, chunkRows, blockRows);
        return with(scenario, chunks, false, Map.of());
    }

    private static TestCall with(
            TestCall scenario, Chunks chunks, boolean keepGathered, Map<Integer, Double> slow) {
        return new TestCall(
                scenario.writer(),
                chunks,
                scenario.lanes(),
                scenario.hosts(),
                scenario.aType(),
                scenario.outType(),
                scenario.columns(),
                keepGathered,
                scenario.workers(),
                slow);
    }
}
