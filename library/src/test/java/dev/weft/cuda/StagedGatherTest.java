package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.World;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Planner;
import dev.weft.plan.Shards;
import dev.weft.plan.Transfer;
import dev.weft.tensor.DType;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The fabric's own gather is called once all shards are there, and raises all flags after it. */
class StagedGatherTest {

    @Test
    void itComesAfterAllShardsAndBeforeAllFlags() {
        Chunks chunks = Chunks.byRows(Shards.of(10, 0, 6), 8, 4, 4);
        StagedLayout layout = new StagedLayout(chunks, DType.BF16);
        try (World world = World.threads(3, Duration.ofSeconds(10))) {
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        int rank = fabric.rank();
                        List<Transfer> arrivals =
                                StagedCopies.arrivals(
                                        Planner.plan(Algorithm.SEQUENTIAL, chunks, 1, rank));
                        int[] gathers = new int[1];
                        try (Region region = fabric.allocate(layout.bytes(rank))) {
                            RowGather gather =
                                    (in, fromAt, toAt, rowBytes, rows) -> {
                                        gathers[0]++;
                                        assertEquals(layout.shardAt(rank, 1), fromAt);
                                        assertEquals(layout.landingAt(rank, 1), toAt);
                                        assertEquals(layout.pitchBytes(), rowBytes);
                                        assertArrayEquals(new long[] {10, 0, 6}, rows);
                                        for (int r = 0; r < 3; r++) {
                                            int all = layout.staged(3, r, chunks.count(r) - 1);
                                            assertTrue(
                                                    fabric.reached(
                                                            in, r, StagedLayout.STAGED_AT, all));
                                        }
                                        for (Transfer transfer : arrivals) {
                                            long flag = layout.flagAt(transfer.tag());
                                            assertFalse(fabric.reached(in, rank, flag, 3));
                                        }
                                    };
                            int last = layout.staged(3, rank, chunks.count(rank) - 1);
                            fabric.publish(region, StagedLayout.STAGED_AT, last);
                            new StagedGather(gather, fabric, region, layout, arrivals).accept(3);
                            assertEquals(1, gathers[0]);
                            for (Transfer transfer : arrivals) {
                                long flag = layout.flagAt(transfer.tag());
                                assertTrue(fabric.reached(region, rank, flag, 3));
                            }
                        }
                    });
        }
    }
}
