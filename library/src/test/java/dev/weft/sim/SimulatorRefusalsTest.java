package dev.weft.sim;

import static dev.weft.sim.Toy.machine;
import static dev.weft.sim.Toy.tiles;
import static dev.weft.sim.Toy.wires;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What a machine cannot do is refused in one line that says why. */
class SimulatorRefusalsTest {

    private static final Machine TOY = machine(tiles(1), wires(Wiring.Topology.MESH));
    private static final TestCall RING = Toy.call(Algorithm.RING, 1, 4, 4);

    @Test
    void nodesWithoutANetwork() {
        TestCall apart = Toy.call(Algorithm.RING, 1, Hosts.apart(2), 4, 4, 4);
        refuses("hosts of 1+1 ranks on toy, which has no network", TOY, apart);
        TestCall uneven = Toy.call(Algorithm.RING, 1, Hosts.of(2, 1), 4, 4, 4, 4);
        refuses("hosts of 2+1 ranks on toy, which has no network", TOY, uneven);
    }

    @Test
    void aTypeWithoutARate() {
        refuses("no rate for A of type fp32", TOY, call(RING.chunks(), DType.FP32, Map.of()));
    }

    @Test
    void aTorusWithOtherPlacesThanRanks() {
        refuses("2 ranks of a node on a torus of [2, 2]", machine(tiles(1), Toy.torus(2, 2)), RING);
    }

    @Test
    void aPingPongRingWhoseLastShardIsTakenFirst() {
        refuses("a ping-pong ring on toy", Toy.bySource(TOY), Toy.pingPong(4, 4, 4, 4, 4));
    }

    @Test
    void moreTransfersThanCanBeSimulated() {
        Chunks many = Chunks.byRows(Shards.of(60_000_000, 0), 1, 1, 1);
        refuses("120000000 transfers", TOY, call(many, DType.FP16, Map.of()));
    }

    @Test
    void ranksThatAreNotThereOrNotSlow() {
        refuses("rank 2 3.0 times", () -> call(RING.chunks(), DType.FP16, Map.of(2, 3.0)).on(TOY));
        refuses("rank 1 0.0 times", () -> call(RING.chunks(), DType.FP16, Map.of(1, 0.0)).on(TOY));
    }

    @Test
    void auto() {
        refuses("auto has no plan", TOY, Toy.call(Algorithm.AUTO, 1, 4, 4));
    }

    private static TestCall call(Chunks chunks, DType type, Map<Integer, Double> slow) {
        return new TestCall(
                Algorithm.RING,
                chunks,
                1,
                Hosts.one(2),
                type,
                DType.FP32,
                List.of(4L),
                false,
                0,
                slow);
    }

    private static void refuses(String reason, Machine machine, TestCall scenario) {
        refuses(reason, () -> Simulator.run(machine, scenario.on(machine), View.PIPELINED));
        refuses(
                reason,
                () -> Simulator.runEveryRank(machine, scenario.on(machine), View.PIPELINED, null));
    }

    private static void refuses(String reason, Executable call) {
        String message = assertThrows(IllegalArgumentException.class, call).getMessage();
        assertTrue(message.contains(reason), message);
        assertFalse(message.contains("\n"), message);
    }
}
