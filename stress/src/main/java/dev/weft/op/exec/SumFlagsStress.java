package dev.weft.op.exec;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.List;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/**
 * Sums that go from rank to rank and back: a lane that finds a chunk multiplied, or whole, sends
 * what the worker has written, and who sees it arrive sees it all. One actor is the workers of both
 * ranks and the other is their lanes, so that two cores are enough and every flag passes from one
 * to the other. Both make their calls in the same order, so that one region serves all.
 */
@JCStressTest
@Outcome(id = "0", expect = ACCEPTABLE, desc = "All sums were of their own call.")
@Outcome(expect = FORBIDDEN, desc = "A flag without the sums that it announces.")
@State
public class SumFlagsStress {

    private static final int CALLS = 4;
    private static final List<Rank> RANKS = Slots.onBothRanks(Rank::of);

    /** Each is one actor's. */
    private static int multipliedCalls;

    private static int sentCalls;

    @Actor
    public void workers(I_Result r) {
        for (int i = 0; i < CALLS; i++) {
            int call = ++multipliedCalls;
            // Few enough bits to be a float without loss.
            float sum = call & 0xFFFFF;
            Rank first = RANKS.get(0);
            Rank last = RANKS.get(1);
            first.sums(Reduction.PARTIAL, call).set(0, 0, sum);
            first.raise(first.memory().multipliedAt(0), call);
            Matrix sums = last.arrived(Reduction.PARTIAL, call);
            r.r1 += sums.get(0, 0) == sum ? 0 : 1;
            sums.set(0, 0, -sum);
            last.raise(last.memory().multipliedAt(0), call);
            last.raise(last.memory().summedAt(0), call);
            r.r1 += first.arrived(Reduction.WHOLE, call).get(0, 0) == -sum ? 0 : 1;
        }
    }

    @Actor
    public void lanes() {
        for (int i = 0; i < CALLS; i++) {
            int call = ++sentCalls;
            RANKS.forEach(rank -> rank.send(call));
        }
    }

    /** Two ranks with a part of K each, and one row of one element, which both get. */
    private record Rank(Transport fabric, SumMemory memory, CallState state, LaneWorker lane) {

        static Rank of(Transport fabric) {
            Shards inner = Shards.of(1, 1);
            Chunks chunks = Chunks.byRows(Shards.of(1, 0), 1, 1, 1);
            List<RankPlan> plans = Reduction.CHAIN.plans(chunks, inner, true);
            RankPlan plan = plans.get(fabric.rank());
            SumMemory memory = new SumMemory(fabric, plans, inner, DType.FP32, DType.FP32);
            CallState state = new CallState(1);
            Releases none = new Releases(plan, fabric, null, 1);
            LaneWorker lane =
                    new LaneWorker(plan.lanes().getFirst(), plan, fabric, memory, state, none, -1);
            return new Rank(fabric, memory, state, lane);
        }

        Matrix sums(int slot, int call) {
            return memory.sums(slot, call);
        }

        void raise(long flag, int call) {
            fabric.signal(memory.region(), fabric.rank(), flag, call);
        }

        Matrix arrived(int slot, int call) {
            fabric.await(
                    memory.region(),
                    fabric.rank(),
                    memory.flagAt(slot, 0),
                    call,
                    memory.arrival(slot, 0));
            return sums(slot, call);
        }

        void send(int call) {
            state.call = call;
            state.view = View.PIPELINED;
            lane.run();
        }
    }
}
