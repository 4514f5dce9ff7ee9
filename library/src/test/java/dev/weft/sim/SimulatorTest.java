package dev.weft.sim;

import static dev.weft.sim.Toy.cores;
import static dev.weft.sim.Toy.machine;
import static dev.weft.sim.Toy.tiles;
import static dev.weft.sim.Toy.wires;
import static dev.weft.sim.Wiring.Topology.BUS;
import static dev.weft.sim.Wiring.Topology.MESH;
import static dev.weft.sim.Wiring.Topology.RING;
import static dev.weft.sim.Wiring.Topology.SWITCH;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Placement;
import dev.weft.plan.step.Placement.OfRank;
import dev.weft.plan.step.Placement.Range;
import dev.weft.plan.step.StepPlanBuilder;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Calls that are small enough to be worked out by hand, on {@link Toy}'s machine. */
class SimulatorTest {

    /** Start, the chunk's 1000 on the link, 250 until it is known, and then its tile's 100. */
    @Test
    void twoRanksOneChunkEach() {
        Prediction call =
                run(machine(tiles(1), wires(MESH)), Toy.call(Algorithm.MESH_PUSH, 1, 4, 4));
        assertNs(5000 + 1000 + 250 + 100, call.ns());
        assertNs(6250, call.arrivedNs());
        assertNs(6350, call.bounds().pathNs());
        assertNs(6000, call.bounds().linkNs());
        assertNs(5200, call.bounds().computeNs());
        assertNs(6350, call.bounds().ns());
        assertEquals(1, call.simulatedRanks());
        assertEquals(1, call.transfers());
    }

    @Test
    void theWholeIsOfTransfersAndProducts() {
        Machine machine = machine(tiles(1), wires(MESH));
        TestCall scenario = Toy.call(Algorithm.MESH_PUSH, 1, 4, 4);
        assertNs(6250, Simulator.run(machine, scenario.on(machine), View.COMM_ONLY).ns());
        assertNs(5200, Simulator.run(machine, scenario.on(machine), View.COMPUTE_ONLY).ns());
        assertEquals(
                0, Simulator.run(machine, scenario.on(machine), View.COMPUTE_ONLY).transfers());
    }

    /** What arrives at 6250 is forwarded then, and arrives at 6250 + 1250. */
    @Test
    void aRingForwardsWhatHasArrived() {
        Prediction call =
                run(machine(tiles(1), wires(SWITCH)), Toy.call(Algorithm.RING, 1, 4, 4, 4));
        assertNs(7500, call.arrivedNs());
        assertNs(7600, call.ns());
        assertNs(7600, call.bounds().pathNs());
        assertNs(7000, call.bounds().linkNs());
    }

    /** The lane waits for what it forwards, and the unit for what it multiplies: 30 for each. */
    @Test
    void whoHadToWaitIsWokenFirst() {
        Machine machine = Toy.withWake(machine(tiles(1), wires(SWITCH)), 30);
        assertNs(7500 + 30 + 30 + 100, run(machine, Toy.call(Algorithm.RING, 1, 4, 4, 4)).ns());
    }

    /** Both directions at once: one step, in which either way has one chunk. */
    @Test
    void aBidirectionalRingHasHalfTheHops() {
        Machine machine = machine(tiles(1), wires(RING));
        assertNs(
                6250, run(machine, Toy.call(Algorithm.BIDIRECTIONAL_RING, 2, 4, 4, 4)).arrivedNs());
        assertNs(7500, run(machine, Toy.call(Algorithm.RING, 1, 4, 4, 4)).arrivedNs());
    }

    /** A rank's two puts share its port; in a mesh each has a link of its own. */
    @Test
    void transfersShareAPort() {
        TestCall scenario = Toy.call(Algorithm.MESH_PUSH, 2, 4, 4, 4);
        assertNs(7250, run(machine(tiles(1), wires(SWITCH)), scenario).arrivedNs());
        assertNs(6250, run(machine(tiles(1), wires(MESH)), scenario).arrivedNs());
    }

    /** Six transfers, three at a time, each at a third of the rate. */
    @Test
    void allShareABus() {
        Prediction call =
                run(machine(tiles(1), wires(BUS)), Toy.call(Algorithm.MESH_PUSH, 1, 4, 4, 4));
        assertNs(5000 + 6000 + 250, call.arrivedNs());
        assertNs(5000 + 6000, call.bounds().linkNs());
    }

    @Test
    void bothDirectionsShareAHalfDuplexLink() {
        TestCall scenario = Toy.call(Algorithm.MESH_PUSH, 1, 4, 4);
        for (Wiring.Topology topology : List.of(MESH, SWITCH, RING)) {
            assertNs(6250, run(machine(tiles(1), wires(topology)), scenario).arrivedNs());
            assertNs(7250, run(machine(tiles(1), Toy.halfDuplex(topology)), scenario).arrivedNs());
        }
    }

    /** The third put goes from corner to corner, over two links. */
    @Test
    void everyLinkOfATorusHasItsLatency() {
        Machine machine = machine(tiles(1), Toy.torus(2, 2));
        Prediction call = run(machine, Toy.call(Algorithm.MESH_PUSH, 1, 4, 0, 0, 0));
        assertNs(5000 + 3000 + 200 + 250, call.arrivedNs());
    }

    /**
     * Clockwise each link carries a chunk to the next rank, one to the rank after, and one that
     * comes from the rank before: three at a time.
     */
    @Test
    void transfersShareTheLinksOnTheirWay() {
        Prediction call =
                run(machine(tiles(1), wires(RING)), Toy.call(Algorithm.MESH_PUSH, 3, 4, 4, 4, 4));
        assertNs(5000 + 3000 + 200 + 250, call.arrivedNs());
        assertNs(5000 + 3000, call.bounds().linkNs());
    }

    @Test
    void aChunkOfTheRampsSizeHasHalfTheRate() {
        TestCall scenario = Toy.call(Algorithm.MESH_PUSH, 1, 4, 4);
        assertNs(7250, run(machine(tiles(1), Toy.ramped(MESH)), scenario).arrivedNs());
    }

    /** Two chunks to one peer: one after the other in one lane, side by side in two. */
    @Test
    void oneLaneAloneCannotFillALink() {
        Machine machine = machine(tiles(1), Toy.inTwoLanes(MESH));
        assertNs(
                5000 + 4000 + 250,
                run(machine, Toy.call(Algorithm.MESH_PUSH, 1, 8, 8)).arrivedNs());
        assertNs(
                5000 + 2000 + 250,
                run(machine, Toy.call(Algorithm.MESH_PUSH, 2, 8, 8)).arrivedNs());
    }

    /** The second get begins when the first has come, the second put when the first has left. */
    @Test
    void aGetWaitsForItsBytes() {
        Machine machine = machine(tiles(1), wires(MESH));
        assertNs(
                5000 + 2000 + 250,
                run(machine, Toy.call(Algorithm.MESH_PUSH, 1, 8, 8)).arrivedNs());
        assertNs(
                5000 + 2000 + 200 + 250,
                run(machine, Toy.call(Algorithm.MESH_PULL, 1, 8, 8)).arrivedNs());
    }

    @Test
    void aCutTileTakesAsLongAsAWholeOne() {
        Machine machine = machine(tiles(1), wires(MESH));
        Hosts alone = Hosts.one(1);
        for (long rows = 1; rows <= 4; rows++) {
            for (long n = 1; n <= 4; n++) {
                assertNs(5100, run(machine, Toy.call(Algorithm.RING, 1, alone, n, rows)).ns());
            }
        }
        assertNs(5200, run(machine, Toy.call(Algorithm.RING, 1, alone, 5, 4)).ns());
    }

    @Test
    void oneTileMoreThanUnitsIsASecondWave() {
        Machine machine = machine(tiles(2), wires(MESH));
        Hosts alone = Hosts.one(1);
        assertNs(5100, run(machine, Toy.call(Algorithm.RING, 1, alone, 8, 4)).ns());
        assertNs(5200, run(machine, Toy.call(Algorithm.RING, 1, alone, 12, 4)).ns());
        assertNs(5200, run(machine, Toy.call(Algorithm.RING, 1, alone, 16, 4)).ns());
    }

    /** 64 bytes of A, 64 of C and 64 of B at 0.96 bytes a nanosecond. */
    @Test
    void memoryLimitsATile() {
        TestCall scenario = Toy.call(Algorithm.RING, 1, 4);
        assertNs(5200, run(withMemory(0.96, 0), scenario).ns());
        // B stays on the chip: 128 bytes.
        assertNs(5000 + 128 / 0.96, run(withMemory(0.96, 1), scenario).ns());
        // The operations take longer than that.
        assertNs(5100, run(withMemory(1.92, 0), scenario).ns());
    }

    private static Machine withMemory(double gbps, double onChipMib) {
        Machine toy = machine(tiles(1), wires(MESH));
        return new Machine(
                toy.name(),
                toy.description(),
                toy.sources(),
                toy.engine(),
                new Machine.Memory(gbps, onChipMib),
                toy.overheads(),
                toy.consumption(),
                toy.ranksPerNode(),
                toy.node(),
                toy.network(),
                toy.copies());
    }

    /** Each rank has two blocks to multiply. */
    @Test
    void ranksShareTheCoresOfAHost() {
        TestCall scenario = Toy.call(Algorithm.DIRECT, 1, 4, 4);
        assertNs(5400, run(machine(cores(1, 1), wires(BUS)), scenario).ns());
        assertNs(5200, run(machine(cores(2, 2), wires(BUS)), scenario).ns());
        assertNs(5100, run(machine(cores(4, 4), wires(BUS)), scenario).ns());
        // Two cores that do the work of one and a half.
        assertNs(5000 + 400 / 1.5, run(machine(cores(2, 1.5), wires(BUS)), scenario).ns());
    }

    /** 4 rows of 128 columns are 32 times as long as of 4, of 127 columns too few for two parts. */
    @Test
    void workersShareTheColumnsOfASingleBlock() {
        Machine one = machine(cores(1, 1), wires(BUS));
        Machine two = machine(cores(2, 2), wires(BUS));
        TestCall wide = Toy.call(Algorithm.DIRECT, 1, Hosts.one(1), 128, 4);
        assertNs(5000 + 3200, run(one, wide).ns());
        assertNs(5000 + 1600, run(two, wide).ns());
        TestCall narrow = Toy.call(Algorithm.DIRECT, 1, Hosts.one(1), 127, 4);
        assertNs(5000 + 3175, run(two, narrow).ns());
    }

    @Test
    void everyHostHasItsOwnCores() {
        Machine machine = machine(cores(1, 1), wires(BUS), wires(SWITCH));
        TestCall scenario = Toy.call(Algorithm.RING, 1, Hosts.apart(2), 4, 4, 4);
        assertNs(5200, Simulator.run(machine, scenario.on(machine), View.COMPUTE_ONLY).ns());
    }

    /**
     * Two copies and two products begin on the one core. The products have their 100 at 5400; the
     * copies have 900 left each, and end at 7200. Then two products share the core again.
     */
    @Test
    void aCoreThatCopiesMultipliesLess() {
        Prediction call =
                run(machine(cores(1, 1), Toy.copies()), Toy.call(Algorithm.MESH_PUSH, 1, 4, 4));
        assertNs(7200 + 250, call.arrivedNs());
        assertNs(7450 + 200, call.ns());
        assertNs(5000 + 2400, call.bounds().computeNs());
    }

    @Test
    void sequentialGathersFirst() {
        for (Engine engine : List.of(tiles(1), cores(2, 2))) {
            Machine machine = machine(engine, wires(MESH));
            TestCall scenario = Toy.call(Algorithm.SEQUENTIAL, 1, 8, 8);
            Prediction call = run(machine, scenario);
            assertNs(7450, call.arrivedNs());
            assertNs(7450 + 400, call.ns());
            assertNs(7450, Simulator.run(machine, scenario.on(machine), View.COMM_ONLY).ns());
            assertNs(5400, Simulator.run(machine, scenario.on(machine), View.COMPUTE_ONLY).ns());
        }
    }

    @Test
    void directTransfersNothing() {
        Prediction call = run(machine(tiles(1), wires(MESH)), Toy.call(Algorithm.DIRECT, 1, 8, 4));
        assertEquals(0, call.transfers());
        assertEquals(0, call.arrivedNs());
        assertNs(5300, call.ns());
    }

    /**
     * A block takes 2000. The chunk of step 2 arrives at 7500; in a plain ring it is forwarded then
     * and arrives at 8750. With two buffers it has to wait until the receiver has multiplied, from
     * 7000 to 9000, what came in step 1.
     */
    @Test
    void pingPongWaitsForABuffer() {
        Machine machine = machine(tiles(1), wires(SWITCH));
        TestCall plain = Toy.call(Algorithm.RING, 1, Hosts.one(4), 80, 4, 4, 4, 4);
        assertNs(8750, run(machine, plain).arrivedNs());
        Prediction pingPong = run(machine, Toy.pingPong(80, 4, 4, 4, 4));
        assertNs(9000 + 1250, pingPong.arrivedNs());
        assertNs(5000 + 4 * 2000, pingPong.ns());
        assertNs(10250, everyRank(machine, Toy.pingPong(80, 4, 4, 4, 4)).arrivedNs());
    }

    /**
     * Rank 1 takes 6000 for a block: its own until 11000, that of step 1 until 17000. Only then may
     * rank 0, where nothing else happens after 13000, put the chunk of step 3.
     */
    @Test
    void pingPongWaitsForASlowReceiver() {
        Machine machine = machine(tiles(1), wires(SWITCH));
        Prediction call = run(machine, Toy.withSlow(Toy.pingPong(80, 4, 4, 4, 4), 1, 3));
        assertNs(17000 + 1250, call.arrivedNs());
        assertNs(5000 + 4 * 6000, call.ns());
    }

    /** Two slices of 100: a program's unit takes its own, and a second unit is of no use to it. */
    @Test
    void programsHaveUnitsOfTheirOwn() {
        Wiring wires = wires(SWITCH);
        assertNs(5200, run(machine(tiles(1), wires), Toy.sliced(1, 2, false, 1, 4)).ns());
        assertNs(5100, run(machine(tiles(2), wires), Toy.sliced(2, 1, false, 1, 4)).ns());
        // One program's two tiles, one after the other, though the other's unit is idle.
        assertNs(5200, run(machine(tiles(2), wires), Toy.sliced(2, 1, false, 1, 8)).ns());
        assertNs(5100, run(machine(tiles(4), wires), Toy.sliced(2, 1, false, 1, 8)).ns());
        Machine cores = machine(cores(2, 2), Toy.copies());
        assertNs(5100, run(cores, Toy.sliced(2, 1, false, 1, 4)).ns());
        assertEquals(
                List.of("compute-0 of program-0", "compute-0 of program-1"),
                tracks(machine(tiles(2), wires), Toy.sliced(2, 1, true, 1, 4)));
    }

    private static List<String> tracks(Machine machine, TestCall call) {
        Set<String> tracks = new TreeSet<>();
        SpanSink sink = (rank, track, span) -> tracks.add(track);
        Simulator.runEveryRank(machine, call.on(machine), View.PIPELINED, sink);
        return List.copyOf(tracks);
    }

    /** A transfer alone gets half of a link: two channels move two slices in the time of one. */
    @Test
    void channelsMoveAtTheSameTime() {
        Machine machine = machine(tiles(2), Toy.inTwoLanes(SWITCH));
        assertNs(5000 + 2 * 2000 + 250, run(machine, Toy.sliced(2, 1, false, 2, 4)).arrivedNs());
        assertNs(5000 + 2000 + 250, run(machine, Toy.sliced(1, 2, false, 2, 4)).arrivedNs());
    }

    /** Only what forwards use a buffer for counts: 6250, 7500 and 8750 as in a plain ring. */
    @Test
    void pingPongWithoutProductsWaitsForForwardsAlone() {
        Machine machine = machine(tiles(1), wires(SWITCH));
        TestCall scenario = Toy.pingPong(80, 4, 4, 4, 4);
        assertNs(8750, Simulator.run(machine, scenario.on(machine), View.COMM_ONLY).arrivedNs());
    }

    /**
     * Blocks of 64 rows in two chunks, which take 8000 each and 800 to multiply. Over a network the
     * first half of a block is multiplied while the second is on its way.
     */
    @Test
    void workersOverANetworkGoStepByStep() {
        Machine machine = machine(cores(1, 1), wires(MESH), wires(MESH));
        TestCall apart =
                Toy.cut(Toy.call(Algorithm.MESH_PUSH, 1, Hosts.apart(2), 4, 64, 64), 32, 64);
        assertNs(5000 + 16000 + 250 + 800, run(machine, apart).ns());
        Machine oneHost = machine(cores(2, 2), wires(MESH));
        TestCall together = Toy.cut(Toy.call(Algorithm.MESH_PUSH, 1, 64, 64), 32, 64);
        assertNs(5000 + 16000 + 250 + 1600, run(oneHost, together).ns());
    }

    /** With gathered A a worker copies, at 1000 a block, what it multiplies out of a shard. */
    @Test
    void keepingGatheredCostsCopies() {
        Machine machine = machine(cores(2, 2), Toy.copies());
        TestCall direct = Toy.call(Algorithm.DIRECT, 1, 4, 4);
        assertNs(5200, run(machine, direct).ns());
        assertNs(5000 + 2 * 1100, run(machine, Toy.keepingGathered(direct)).ns());
    }

    /** The slow rank's tiles take 300: its last one begins when the chunk has come. */
    @Test
    void theSlowestRankDecides() {
        Machine machine = machine(tiles(1), wires(MESH));
        TestCall scenario = Toy.withSlow(Toy.call(Algorithm.MESH_PUSH, 1, 4, 4), 1, 3);
        Prediction call = run(machine, scenario);
        assertNs(6250 + 300, call.ns());
        assertEquals(2, call.simulatedRanks());
    }

    /**
     * Two sources deliver side by side, at 6250 and at 7250, blocks that take 500 each. As they
     * come: 6250 to 7250 and 7250 to 8250. Source by source the unit idles from 6750 to 7250, while
     * the other source's first block lies there.
     */
    @Test
    void takingSourceAfterSourceIdlesWhereTheyArriveSideBySide() {
        Machine machine = machine(tiles(1), wires(MESH));
        TestCall scenario = Toy.call(Algorithm.MESH_PUSH, 2, Hosts.one(3), 20, 8, 8, 8);
        assertNs(8250, run(machine, scenario).ns());
        assertNs(8750, run(Toy.bySource(machine), scenario).ns());
    }

    /**
     * Two nodes of two ranks. Each rank puts its chunk over the network to one rank of the other
     * node, which hands it to its mate over a link of their own.
     */
    @Test
    void nodesHandOnWhatComesOverTheNetwork() {
        Machine shared = machine(tiles(1), wires(MESH), wires(SWITCH));
        TestCall scenario = Toy.call(Algorithm.MESH_PUSH, 2, Hosts.of(2, 2), 4, 4, 4, 4, 4);
        // One port for both ranks of a node: 2000 on the network, then 1000 to the mate.
        assertNs(5000 + 2000 + 250 + 1000 + 250, run(shared, scenario).arrivedNs());
        Wiring port = wires(SWITCH);
        Wiring ownPorts =
                new Wiring(
                        SWITCH,
                        List.of(),
                        port.latencyUs(),
                        port.gbps(),
                        0,
                        0,
                        true,
                        true,
                        0,
                        false);
        Machine own = machine(tiles(1), wires(MESH), ownPorts);
        assertNs(5000 + 1000 + 250 + 1000 + 250, run(own, scenario).arrivedNs());
    }

    @Test
    void emptyShardsTakeNothing() {
        Prediction call = run(machine(tiles(1), wires(MESH)), Toy.call(Algorithm.RING, 1, 0, 0));
        assertNs(5000, call.ns());
        assertEquals(0, call.arrivedNs());
    }

    private static Prediction run(Machine machine, TestCall scenario) {
        return Simulator.run(machine, scenario.on(machine), View.PIPELINED);
    }

    private static Prediction everyRank(Machine machine, TestCall scenario) {
        return Simulator.runEveryRank(machine, scenario.on(machine), View.PIPELINED, null);
    }

    private static void assertNs(double expected, double actual) {
        assertEquals(expected, actual, 1e-6);
    }

    /** A core copies a block within its own memory in 1000, and multiplies it in 100 meanwhile. */
    @Test
    void copiesWithinARankUseNoLink() {
        Placement placement =
                new Placement(
                        4,
                        8,
                        4,
                        List.of(
                                new OfRank(
                                        new Range(0, 4),
                                        new Range(0, 8),
                                        new Range(0, 8),
                                        new Range(0, 4))));
        StepPlanBuilder builder = new StepPlanBuilder(placement);
        Part kept = builder.buffer(0, "kept", Buffer.Kind.ROWS, 4, 8);
        builder.copy(0, 0, builder.a(0), kept);
        builder.multiply(0, 0, builder.a(0), builder.b(0), builder.c(0), false);
        Machine machine = machine(cores(2, 2), Toy.copies());
        Prediction call =
                Simulator.run(
                        machine,
                        new Scenario(
                                builder.build(),
                                placement,
                                1,
                                false,
                                Hosts.one(1),
                                DType.FP16,
                                DType.FP32,
                                List.of(4L),
                                false,
                                0,
                                Map.of()),
                        View.PIPELINED);
        assertNs(5000 + 1000 + Toy.AFTER_NS - Toy.LATENCY_NS, call.ns());
        assertEquals(0, call.transfers());
        assertEquals(0, call.arrivedNs());
    }
}
