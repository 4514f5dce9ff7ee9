package dev.weft.op;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.op.exec.ArrivalPlace;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.Releases;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.RowBlock;
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
 * Ping-pong reuse: the predecessor's lane overwrites a buffer only when {@link Releases} has told
 * that its shard is multiplied. Two ranks, so that every call overwrites what the one before read;
 * both actors make their calls in the same order, so that one operator's memory serves all.
 *
 * <p>The successor has two workers, each with its part of the columns of every block: the buffer is
 * free when both have read it, whoever is the last. The second one's part is done by the
 * predecessor's thread, so that two cores are enough: it overwrites what the first one read, after
 * its own decrement or the other's.
 */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Every block was of its own call.")
@Outcome(expect = FORBIDDEN, desc = "A buffer was overwritten while it was in use.")
@State
public class ReleaseWordStress {

    private static final int CALLS = 4;
    private static final Awaited CREDIT = Awaited.of("a free buffer", 1);
    private static final Awaited CHUNK = Awaited.chunk(0, 0, 0);
    private static final Successor SUCCESSOR = Slots.onBothRanks(Successor::of).get(1);

    /** Each is one actor's. */
    private static int sentCalls;

    private static int multipliedCalls;

    /**
     * The latest call that the successor's workers have begun, and the one its second has ended.
     */
    private static volatile int begun;

    private static volatile int helped;

    @Actor
    public void predecessorAndSecondWorker(II_Result r) {
        for (int i = 0; i < CALLS; i++) {
            int call = ++sentCalls;
            SUCCESSOR.send(call);
            while (begun != call) {
                Thread.onSpinWait();
            }
            r.r2 += SUCCESSOR.wrongBlocks(call);
            helped = call;
        }
    }

    @Actor
    public void successor(II_Result r) {
        for (int i = 0; i < CALLS; i++) {
            int call = ++multipliedCalls;
            SUCCESSOR.releases().begin(call, View.PIPELINED);
            begun = call;
            r.r1 += SUCCESSOR.wrongBlocks(call);
            while (helped != call) {
                Thread.onSpinWait();
            }
        }
    }

    /** Rank 1, to whom rank 0 sends its shard of two row blocks in one chunk. */
    private record Successor(
            RankPlan plan, Region region, MemorySegment buffer, long flag, Releases releases) {

        static Successor of(Transport fabric) {
            Chunks chunks = Chunks.byRows(Shards.even(4, 2), 1, 2, 1);
            RankPlan plan =
                    Algorithm.pingPongRing().plans(chunks, 1, fabric.hosts()).get(fabric.rank());
            OperatorMemory memory =
                    new OperatorMemory(
                            fabric, chunks, DType.FP32, ArrivalPlace.PING_PONG, false, 0);
            return new Successor(
                    plan,
                    memory.region(),
                    memory.landing(1, 0, 0).data(),
                    memory.flagAt(0, 0),
                    new Releases(plan, fabric, memory, 2));
        }

        void send(int call) {
            int credit = plan.arrivals().getFirst().transfers().getFirst().credit();
            int needed = releases.needed(call, credit);
            Slots.rank(0).await(region, 1, OperatorMemory.RELEASED_AT, needed, CREDIT);
            buffer.setAtIndex(ValueLayout.JAVA_INT, 0, call);
            buffer.setAtIndex(ValueLayout.JAVA_INT, 1, call);
            Slots.rank(0).signal(region, 1, flag, call);
        }

        int wrongBlocks(int call) {
            Slots.rank(1).await(region, 1, flag, call, CHUNK);
            int wrong = 0;
            List<RowBlock> blocks = plan.consumption();
            for (int i = 0; i < blocks.size(); i++) {
                RowBlock block = blocks.get(i);
                if (block.source() == 0) {
                    int seen = buffer.getAtIndex(ValueLayout.JAVA_INT, block.firstRow());
                    wrong += seen == call ? 0 : 1;
                }
                releases.used(block.source());
            }
            return wrong;
        }
    }
}
