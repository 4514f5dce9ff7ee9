package dev.weft.sim;

import static dev.weft.sim.Toy.cores;
import static dev.weft.sim.Toy.machine;
import static dev.weft.sim.Toy.tiles;
import static dev.weft.sim.Toy.wires;
import static dev.weft.sim.Wiring.Topology.MESH;
import static dev.weft.sim.Wiring.Topology.SWITCH;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Products that are summed over ranks, on {@link Toy}'s machine, where they can be worked out by
 * hand: a part of K is 8, a chunk has 4 rows and 4 columns of C, and its sums as many bytes as a
 * chunk of A. So it takes a link 1000 ns, and a unit or a core 100 ns for each part of K.
 */
class SumSimulationTest {

    private static final int CASES = 300;
    private static final double ROUNDING = 1e-9;
    private static final long PART = 8;

    private final Machine onMesh = machine(tiles(1), wires(MESH));

    /** Product 100, link 1000, known 250, product 100; and the same way back without a product. */
    @Test
    void aChainContinuesSums() {
        assertNs(6450, run(onMesh, call(Reduction.CHAIN, false, parts(2), 0, 4)).ns());
        Prediction back = run(onMesh, call(Reduction.CHAIN, false, parts(2), 4, 0));
        assertNs(6450 + 1250, back.ns());
        assertNs(7700, back.bounds().pathNs());
        assertNs(6000, back.bounds().linkNs());
        assertNs(5100, back.bounds().computeNs());
        assertNs(1250, back.ns() - back.multipliedNs());
    }

    /** The last rank begins when the first block has been multiplied and sent by all others. */
    @Test
    void aChainStartsUpWithABlockForEachRankButOne() {
        Machine machine = onMesh.withLinksFaster(100);
        long blocks = 6;
        for (int ranks = 1; ranks <= 5; ranks++) {
            long[] rows = new long[ranks];
            rows[ranks - 1] = 4 * blocks;
            double expected = 5000 + 100 * (blocks + ranks - 1) + (10 + 250) * (ranks - 1);
            assertNs(expected, run(machine, call(Reduction.CHAIN, false, parts(ranks), rows)).ns());
        }
    }

    /** A chain's sums go round: two hops after the last product. */
    @Test
    void wholeSumsGoRound() {
        Prediction call = run(onMesh, call(Reduction.CHAIN, true, parts(3), 0, 0, 4));
        assertNs(5000 + 100 + 1250 + 100 + 1250 + 100 + 2 * 1250, call.ns());
        assertEquals(4, call.transfers());
    }

    /** All multiply at once; the second adds, and sends on, what arrives at 6350. */
    @Test
    void aRingAddsSums() {
        Prediction call = run(onMesh, call(Reduction.RING, false, parts(3), 0, 0, 4));
        assertNs(6350 + 1250, call.ns());
        assertNs(7600, call.bounds().pathNs());
        assertNs(7600 + 1250, run(onMesh, call(Reduction.RING, false, parts(3), 4, 0, 0)).ns());
    }

    /** The other's rows first; what arrives at 6350 is added where it costs nothing. */
    @Test
    void ownersAddWhatOthersHaveSummed() {
        assertNs(6350, run(onMesh, call(Reduction.MESH_PUSH, false, parts(2), 4, 4)).ns());
        // Two arrive at each rank over its port: at half the rate each.
        Machine machine = machine(tiles(1), wires(SWITCH));
        assertNs(
                5100 + 1000 + 1000 + 250,
                run(machine, call(Reduction.MESH_PUSH, false, parts(3), 4, 4, 4)).ns());
        assertNs(6350 + 1250, run(onMesh, call(Reduction.MESH_PUSH, true, parts(2), 4, 4)).ns());
    }

    @Test
    void roundedSumsTakeHalfTheTime() {
        Scenario call =
                scenario(
                        Reduction.MESH_PUSH,
                        Reduction.Order.BY_RANK_BF16,
                        false,
                        parts(2),
                        Shards.of(4, 4),
                        Hosts.one(2),
                        List.of(Toy.COLS),
                        0);
        assertNs(5100 + 500 + 250, run(onMesh, call).ns());
    }

    @Test
    void sequentialSendsOnceAllIsMultiplied() {
        Prediction call = run(onMesh, call(Reduction.SEQUENTIAL, false, parts(2), 4, 4));
        assertNs(5200 + 1250, call.ns());
        assertNs(1250, call.ns() - call.multipliedNs());
    }

    /** Three parts of K for each owner, and nothing travels. */
    @Test
    void directMultipliesAllParts() {
        Machine machine = machine(cores(3, 3), wires(MESH));
        Prediction call = run(machine, call(Reduction.DIRECT, false, parts(3), 4, 4, 4));
        assertNs(5300, call.ns());
        assertEquals(0, call.transfers());
        assertNs(
                5300 + 2 * 1000 + 250,
                run(machine, call(Reduction.DIRECT, true, parts(3), 4, 4, 4)).ns());
    }

    /**
     * One core copies the 64 bytes of a block's sums in 1000 ns. It takes 0.7 times that to write
     * them after a product, 2.4 times to finish them, and 3.3 times to add two.
     */
    @Test
    void coresAddAndFinishRows() {
        Machine machine = machine(cores(2, 2), Toy.copies());
        assertNs(5000 + 800 + 2400, run(machine, call(Reduction.CHAIN, false, parts(1), 4)).ns());
        // One rank alone finishes rows as it multiplies them, as a gather does.
        assertNs(5000 + 100, run(machine, call(Reduction.DIRECT, false, parts(1), 4)).ns());
        Prediction call = run(machine, call(Reduction.MESH_PUSH, false, parts(2), 4, 4));
        double others = 800 + 1000 + 250;
        assertTrue(call.ns() >= 5000 + others + 3300 + 2400, call::toString);
        assertNs(5000 + (2 * 800 + 1000 + 3300 + 2400), call.bounds().computeNs());
    }

    /** Memory reads and writes 64 bytes to finish rows at 0.64 bytes a nanosecond. */
    @Test
    void memoryAddsAndFinishesRows() {
        Machine machine =
                new Machine(
                        "toy",
                        "",
                        List.of(),
                        tiles(1),
                        new Machine.Memory(0.64, 1),
                        onMesh.overheads(),
                        Machine.Consumption.AS_PLANNED,
                        0,
                        onMesh.node(),
                        null,
                        Machine.Copies.PLAIN);
        // A product reads 64 bytes of A and writes 64 of sums.
        assertNs(5000 + 200 + 200, run(machine, call(Reduction.CHAIN, false, parts(1), 4)).ns());
        // The second one reads sums, too.
        assertNs(
                5000 + 200 + 1250 + 300 + 200,
                run(machine, call(Reduction.CHAIN, false, parts(2), 0, 4)).ns());
    }

    @Test
    void viewsHaveOnlyTheirPart() {
        Scenario chain = call(Reduction.CHAIN, false, parts(3), 4, 0, 0);
        assertNs(5000 + 3 * 1250, Simulator.run(onMesh, chain, View.COMM_ONLY).ns());
        Prediction product = Simulator.run(onMesh, chain, View.COMPUTE_ONLY);
        assertNs(5100, product.ns());
        assertEquals(0, product.transfers());
    }

    @Test
    void ranksWithoutAPartOfKMultiplyNothing() {
        Shards one = Shards.of(0, 0, PART, 0);
        for (Reduction reduction : Reduction.values()) {
            if (!Set.of(Reduction.AUTO, Reduction.DIRECT).contains(reduction)) {
                Prediction call = run(onMesh, call(reduction, false, one, 0, 0, 0, 4));
                assertNs(6350, call.ns());
                assertEquals(1, call.transfers());
            }
        }
        assertNs(5000, run(onMesh, call(Reduction.CHAIN, true, one, 0, 0, 0, 0)).ns());
    }

    /**
     * Each rank of a host sums its blocks over both parts of the host, and the hosts are a chain.
     */
    @Test
    void hostsAreChained() {
        Machine machine = machine(cores(2, 2), wires(MESH), wires(MESH));
        Scenario call =
                scenario(
                        Reduction.HIERARCHICAL,
                        false,
                        parts(4),
                        Shards.of(0, 0, 4, 4),
                        Hosts.of(2, 2),
                        List.of(Toy.COLS),
                        1);
        Prediction prediction = run(machine, call);
        // Two blocks at once on the link between the hosts.
        assertNs(5000 + 200 + 2000 + 250 + 200, prediction.ns());
        assertEquals(2, prediction.transfers());
    }

    @Test
    void aSlowRankHoldsUpTheChain() {
        Scenario call = call(Reduction.CHAIN, false, parts(2), 0, 4);
        assertNs(6450 + 200, run(onMesh, with(call, Map.of(0, 3.0))).ns());
    }

    private static Scenario with(Scenario call, Map<Integer, Double> slow) {
        return new Scenario(
                call.plans(),
                call.placement(),
                call.copiesPerRank(),
                false,
                call.hosts(),
                call.aType(),
                call.outType(),
                call.columns(),
                false,
                0,
                slow);
    }

    /** Whoever waits is told to wait for the rank that sends. */
    @Test
    void spansNameWhoIsWaitedFor() {
        List<SpanSink.Span> spans = new ArrayList<>();
        Simulator.runEveryRank(
                onMesh,
                call(Reduction.CHAIN, true, parts(2), 0, 4),
                View.PIPELINED,
                (rank, track, span) -> {
                    if (span.kind() == SpanSink.Activity.WAIT) {
                        spans.add(span);
                    }
                });
        assertTrue(spans.stream().anyMatch(span -> span.peer() == 0), spans::toString);
        assertTrue(spans.stream().anyMatch(span -> span.peer() == 1), spans::toString);
    }

    /** Any machine, reduction, and uneven and empty parts; a failure names its seed. */
    @Test
    void neverBelowItsBoundsAndAlwaysTheSame() {
        for (long seed = 0; seed < CASES; seed++) {
            RandomCase random = RandomCase.of(seed);
            Scenario call = random(new Random(seed), random.scenario().hosts());
            Prediction whole = run(random.machine(), call);
            String name = "seed " + seed + ": " + whole;
            assertTrue(whole.ns() >= whole.bounds().ns() * (1 - ROUNDING), name);
            assertEquals(whole, run(random.machine(), call), name);
            if (random.machine().engine() instanceof TileEngine) {
                // Where cores are shared, to hurry one rank may slow down another.
                View alone = View.COMPUTE_ONLY;
                double productNs = Simulator.run(random.machine(), call, alone).ns();
                assertTrue(whole.ns() >= productNs * (1 - ROUNDING), name + " " + productNs);
            }
        }
    }

    private static Scenario random(Random random, Hosts hosts) {
        List<Reduction> reductions = new ArrayList<>(List.of(Reduction.values()));
        reductions.remove(Reduction.AUTO);
        if (hosts.count() > 1) {
            reductions.remove(Reduction.DIRECT);
        }
        Reduction reduction = reductions.get(random.nextInt(reductions.size()));
        Shards rows = some(random, hosts.ranks(), 40);
        Shards kParts = some(random, hosts.ranks(), 300);
        boolean all = random.nextBoolean();
        List<Long> columns = List.of(1L + random.nextInt(40), 1L + random.nextInt(300));
        return scenario(reduction, all, kParts, rows, hosts, columns, random.nextInt(3));
    }

    private static Shards some(Random random, int ranks, int most) {
        long[] counts = new long[ranks];
        Arrays.setAll(counts, i -> random.nextInt(4) == 0 ? 0 : random.nextInt(most));
        return Shards.of(counts);
    }

    private static Shards parts(int ranks) {
        return Shards.even(PART * ranks, ranks);
    }

    private static Scenario call(Reduction reduction, boolean all, Shards kParts, long... rows) {
        return scenario(
                reduction,
                all,
                kParts,
                Shards.of(rows),
                Hosts.one(rows.length),
                List.of(Toy.COLS),
                0);
    }

    private static Scenario scenario(
            Reduction reduction,
            boolean all,
            Shards kParts,
            Shards rows,
            Hosts hosts,
            List<Long> columns,
            int workers) {
        return scenario(reduction, reduction.order(), all, kParts, rows, hosts, columns, workers);
    }

    private static Scenario scenario(
            Reduction reduction,
            Reduction.Order order,
            boolean all,
            Shards kParts,
            Shards rows,
            Hosts hosts,
            List<Long> columns,
            int workers) {
        long n = columns.stream().mapToLong(Long::longValue).sum();
        Chunks chunks = Chunks.byRows(rows, n, Toy.ROWS, Toy.ROWS);
        return new Scenario(
                reduction.plans(new ReductionRequest(chunks, kParts, all, order, hosts)),
                new ReductionRequest(
                                Chunks.byRows(rows, n, 1, 1), kParts, all, Reduction.Order.WHOLE)
                        .placement(),
                chunks.total(),
                false,
                hosts,
                DType.FP16,
                DType.FP32,
                columns,
                false,
                workers,
                Map.of());
    }

    private static Prediction run(Machine machine, Scenario scenario) {
        return Simulator.run(machine, scenario, View.PIPELINED);
    }

    private static void assertNs(double expected, double actual) {
        assertEquals(expected, actual, 1e-6);
    }
}
