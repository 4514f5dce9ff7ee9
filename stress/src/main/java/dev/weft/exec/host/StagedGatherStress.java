package dev.weft.exec.host;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
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
 * a signal sees the peer's rows of this call, though a fast rank stages the next call meanwhile.
 * Both actors make their calls in the same order, so that one region serves all.
 */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Every call gathered its own rows.")
@Outcome(expect = FORBIDDEN, desc = "A call gathered rows of another one, or raised no signal.")
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

    /**
     * One row of one element on each rank.
     *
     * @param arrivals by rank: what says that the other's row has come
     */
    private record Rank(
            Transport fabric, HostCall call, GatherWorker gather, List<Signal> arrivals) {

        static Rank of(Transport fabric) {
            Chunks chunks = Chunks.byRows(Shards.of(1, 1), 1, 1, 1);
            List<StepPlan> plans =
                    Algorithm.SEQUENTIAL.plans(new GatherRequest(chunks, 1, Hosts.one(2), 1));
            StepPlan plan = plans.get(fabric.rank());
            StepMemory memory = new StepMemory(fabric, plan, DType.FP32, null, null, null);
            RowNames names = new RowNames(chunks);
            RankSteps steps = new RankSteps(fabric, plan, memory, names, false, true);
            HostCall call = new HostCall(fabric, memory, steps, names);
            call.view = View.PIPELINED;
            RowGather gather =
                    (parts, fromAt, toAt, rowBytes, rows) ->
                            copyAll(fabric, parts, fromAt, toAt, rowBytes);
            return new Rank(
                    fabric,
                    call,
                    new GatherWorker(
                            gather, GatherRequest.GATHERED, chunks.shards(), () -> {}, call),
                    plans.stream()
                            .map(one -> one.workers().getFirst().steps().getFirst().signal())
                            .toList());
        }

        /** Shards are equally large, so they lie at the same place in every part. */
        private static void copyAll(
                Transport fabric, Region region, long fromAt, long toAt, long rowBytes) {
            MemorySegment own = region.part(fabric.rank());
            for (int r = 0; r < fabric.size(); r++) {
                MemorySegment.copy(region.part(r), fromAt, own, toAt + r * rowBytes, rowBytes);
            }
        }

        boolean isRight(int number) {
            int rank = fabric.rank();
            Region region = call.memory.region();
            call.begin(number);
            call.memory
                    .matrix(rank, StepPlan.A, number)
                    .data()
                    .set(ValueLayout.JAVA_INT, 0, number);
            fabric.publish(region, StepMemory.STAGED_AT, number);
            gather.run();
            // The peer may be late: its signal need not be raised, but must not be too early.
            boolean peerIsDone = hasCome(1 - rank, number);
            return hasCome(rank, number)
                    && gathered(rank, number) == number
                    && (!peerIsDone || gathered(1 - rank, number) == number);
        }

        private boolean hasCome(int rank, int number) {
            long at = StepMemory.wordAt(arrivals.get(rank).word());
            return fabric.reached(call.memory.region(), rank, at, number);
        }

        /** What has come to a rank from the other one. */
        private int gathered(int rank, int number) {
            return call.memory
                    .matrix(rank, GatherRequest.GATHERED, number)
                    .data()
                    .get(ValueLayout.JAVA_INT, (1 - rank) * (long) Integer.BYTES);
        }
    }
}
