package dev.weft.op.exec;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * Shards that are staged in host memory and gathered in one go, by copies in place of MPI: who sees
 * a flag sees the peer's rows of this call, though a fast rank stages the next call meanwhile. Both
 * actors make their calls in the same order, so that one region serves all.
 */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Every call gathered its own rows.")
@Outcome(expect = FORBIDDEN, desc = "A call gathered rows of another one, or raised no flag.")
@State
public class StagedGatherStress {

    private static final int CALLS = 3;
    private static final List<Rank> RANKS = Slots.onBothRanks(Rank::of);

    /** By rank, each its actor's. */
    private static final int[] CALLS_MADE = new int[2];

    @Actor
    public void rank0(II_Result r) {
        r.r1 = wrongCalls(0);
    }

    @Actor
    public void rank1(II_Result r) {
        r.r2 = wrongCalls(1);
    }

    private static int wrongCalls(int rank) {
        int wrong = 0;
        for (int i = 0; i < CALLS; i++) {
            wrong += RANKS.get(rank).isRight(++CALLS_MADE[rank]) ? 0 : 1;
        }
        return wrong;
    }

    /** One row of one element on each rank. */
    private record Rank(Workspace workspace, GatherWorker gather) {

        static Rank of(Transport fabric) {
            Chunks chunks = Chunks.byRows(Shards.of(1, 1), 1, 1, 1);
            RankPlan plan = Algorithm.SEQUENTIAL.plans(chunks, 1, Hosts.one(2)).get(fabric.rank());
            OperatorMemory memory =
                    OperatorMemory.staged(fabric, chunks, DType.FP32, Integer.BYTES);
            Workspace workspace = Workspace.of(plan, fabric, memory, false);
            RowGather gather =
                    (parts, fromAt, toAt, rowBytes, rows) ->
                            copyAll(fabric, parts, fromAt, toAt, rowBytes);
            return new Rank(workspace, new GatherWorker(gather, workspace));
        }

        /** Shards are equally large, so they lie at the same place in every part. */
        private static void copyAll(
                Transport fabric, Region region, long fromAt, long toAt, long rowBytes) {
            MemorySegment own = region.part(fabric.rank());
            for (int r = 0; r < fabric.size(); r++) {
                MemorySegment.copy(region.part(r), fromAt, own, toAt + r * rowBytes, rowBytes);
            }
        }

        boolean isRight(int call) {
            OperatorMemory memory = workspace.memory();
            Transport fabric = workspace.fabric();
            Region region = memory.region();
            int rank = fabric.rank();
            int slot = call & 1;
            workspace.state().call = call;
            workspace.state().view = View.PIPELINED;
            region.part(rank).set(ValueLayout.JAVA_INT, memory.shardAt(rank, slot), call);
            fabric.publish(region, OperatorMemory.STAGED_AT, memory.ready(call, rank, 0));
            gather.run();
            // The peer may be late: its flag need not be raised, but must not be too early.
            boolean peerIsDone = fabric.reached(region, 1 - rank, memory.flagAt(rank, 0), call);
            return fabric.reached(region, rank, memory.flagAt(1 - rank, 0), call)
                    && gathered(rank, slot) == call
                    && (!peerIsDone || gathered(1 - rank, slot) == call);
        }

        /** What has come to a rank from the other one. */
        private int gathered(int rank, int slot) {
            OperatorMemory memory = workspace.memory();
            long row = memory.landingAt(rank, slot) + (1 - rank) * (long) Integer.BYTES;
            return memory.region().part(rank).get(ValueLayout.JAVA_INT, row);
        }
    }
}
