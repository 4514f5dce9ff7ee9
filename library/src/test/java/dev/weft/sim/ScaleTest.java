package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** 4,096 ranks in nodes of 8, 16 chunks a shard, in the memory that this JVM has. */
class ScaleTest {

    private static final int RANKS = 4096;
    private static final int CHUNKS = 16;

    @ParameterizedTest
    @EnumSource(names = {"RING", "MESH_PUSH"})
    void oneNodeStandsForAll(Algorithm algorithm) {
        Machine machine = Machines.named("h100-nvlink8");
        long[] rows = new long[RANKS];
        Arrays.fill(rows, CHUNKS * 128);
        Hosts hosts = machine.hosts(RANKS);
        TestCall scenario =
                new TestCall(
                        algorithm,
                        Chunks.bySplits(Shards.of(rows), 4096, CHUNKS, 128),
                        algorithm.lanes(hosts, 4),
                        hosts,
                        DType.BF16,
                        DType.BF16,
                        List.of(1024L),
                        false,
                        0,
                        Map.of());
        Prediction prediction = Simulator.run(machine, scenario.on(machine), View.PIPELINED);
        assertEquals(8, prediction.simulatedRanks());
        // A rank of a node gets all that the other 4,095 have.
        assertEquals(8L * CHUNKS * (RANKS - 1), prediction.transfers());
        assertTrue(prediction.ns() >= prediction.bounds().ns(), prediction.toString());
    }
}
