package dev.weft.op.exec;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Where chunks are staged one by one, the fabric's own gather is called once all shards are there,
 * and raises all flags after it.
 */
class StagedGatherTest {

    private static final int CALL = 3;
    private static final long PITCH_BYTES = 16;

    @Test
    void itComesAfterAllShardsAndBeforeAllFlags() {
        Chunks chunks = Chunks.byRows(Shards.of(10, 0, 6), 8, 4, 4);
        Ranks.run(3, Duration.ofSeconds(10), fabric -> gather(Transport.of(fabric), chunks));
    }

    private static void gather(Transport fabric, Chunks chunks) {
        int rank = fabric.rank();
        RankPlan plan = Algorithm.SEQUENTIAL.plans(chunks, 1, Hosts.one(3)).get(rank);
        List<Transfer> arrivals =
                plan.arrivals().stream().flatMap(lane -> lane.transfers().stream()).toList();
        OperatorMemory memory = OperatorMemory.staged(fabric, chunks, DType.BF16, PITCH_BYTES);
        int[] gathers = new int[1];
        RowGather gather =
                (in, fromAt, toAt, rowBytes, rows) -> {
                    gathers[0]++;
                    assertEquals(memory.shardAt(rank, 1), fromAt);
                    assertEquals(memory.landingAt(rank, 1), toAt);
                    assertEquals(PITCH_BYTES, rowBytes);
                    assertArrayEquals(new long[] {10, 0, 6}, rows);
                    for (int r = 0; r < 3; r++) {
                        int all = memory.ready(CALL, r, chunks.count(r) - 1);
                        assertTrue(fabric.reached(in, r, OperatorMemory.STAGED_AT, all));
                    }
                    arrivals.forEach(t -> assertFalse(hasArrived(fabric, memory, t)));
                };
        Workspace workspace = Workspace.of(plan, fabric, memory, false);
        workspace.state().call = CALL;
        workspace.state().view = View.PIPELINED;
        int last = memory.ready(CALL, rank, chunks.count(rank) - 1);
        fabric.publish(memory.region(), OperatorMemory.STAGED_AT, last);
        new GatherWorker(gather, workspace).run();
        assertEquals(1, gathers[0]);
        arrivals.forEach(t -> assertTrue(hasArrived(fabric, memory, t)));
        memory.region().close();
    }

    private static boolean hasArrived(Transport fabric, OperatorMemory memory, Transfer transfer) {
        long flag = memory.flagAt(transfer.source(), transfer.chunk());
        return fabric.reached(memory.region(), fabric.rank(), flag, CALL);
    }
}
