package dev.weft.exec.host;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.StepPlan;
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
 * Reuse of a buffer: the predecessor overwrites it only when a join has told that all that read it
 * have. Both actors make their calls in the same order, so that one region serves all.
 *
 * <p>The successor has two workers, each with its part of the columns: the buffer is free when both
 * have read it, whoever is the last. The second one's part is done by the predecessor's thread, so
 * that two cores are enough: it overwrites what the first one read, after its own decrement or the
 * other's.
 */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Every block was of its own call.")
@Outcome(expect = FORBIDDEN, desc = "A buffer was overwritten while it was in use.")
@State
public class ReleaseWordStress {

    private static final int CALLS = 4;
    private static final Awaited FREE = Awaited.of(Awaited.BUFFER, 1);
    private static final Awaited CHUNK = Awaited.chunk(0, 0, 0);

    /** At the predecessor: the buffer is free; at the successor: a chunk is there. */
    private static final Signal RELEASED = new Signal(1, 0, 0, 1);

    private static final Signal ARRIVED = new Signal(0, 1, 0, 1);
    private static final List<StepMemory> MEMORY = Slots.onBothRanks(Memory::of);
    private static final Done SENT = new Done(ARRIVED);
    private static final Done.Join BOTH = new Done.Join(2, new Done(RELEASED));
    private static final Done[] READ = {reading(), reading()};

    /** Each is one actor's. */
    private static int sentCalls;

    private static int multipliedCalls;

    /**
     * The latest call that the successor's workers have begun, and the one its second has ended.
     */
    private static volatile int begun;

    private static volatile int helped;

    private static Done reading() {
        Done done = new Done(null);
        done.ends(BOTH);
        return done;
    }

    /** In a class of its own, which is not being initialised. */
    private static final class Memory {

        static StepMemory of(Transport fabric) {
            Chunks chunks = Chunks.byRows(Shards.even(4, 2), 1, 2, 2);
            List<StepPlan> plans =
                    Algorithm.RING.plans(new GatherRequest(chunks, 1, Hosts.one(2), 1));
            return new StepMemory(fabric, plans.get(fabric.rank()), DType.FP32, null, null, null);
        }
    }

    @Actor
    public void predecessorAndSecondWorker(II_Result r) {
        for (int i = 0; i < CALLS; i++) {
            int call = ++sentCalls;
            await(0, call - 1, FREE);
            buffer().setAtIndex(ValueLayout.JAVA_INT, 0, call);
            buffer().setAtIndex(ValueLayout.JAVA_INT, 1, call);
            SENT.raise(Slots.rank(0), MEMORY.get(0), call);
            while (begun != call) {
                Thread.onSpinWait();
            }
            r.r2 += wrongBlocks(call, 1);
            helped = call;
        }
    }

    @Actor
    public void successor(II_Result r) {
        for (int i = 0; i < CALLS; i++) {
            int call = ++multipliedCalls;
            BOTH.reset();
            begun = call;
            r.r1 += wrongBlocks(call, 0);
            while (helped != call) {
                Thread.onSpinWait();
            }
        }
    }

    private static MemorySegment buffer() {
        return MEMORY.get(1).matrix(1, GatherRequest.GATHERED, 0).data();
    }

    /** Both signals have word 0. */
    private static void await(int rank, int value, Awaited what) {
        long at = StepMemory.wordAt(0);
        Slots.rank(rank).await(MEMORY.get(rank).region(), rank, at, value, what);
    }

    private static int wrongBlocks(int call, int worker) {
        await(1, call, CHUNK);
        int wrong = 0;
        for (int row = 0; row < 2; row++) {
            wrong += buffer().getAtIndex(ValueLayout.JAVA_INT, row) == call ? 0 : 1;
        }
        READ[worker].raise(Slots.rank(1), MEMORY.get(1), call);
        return wrong;
    }
}
