package dev.weft.op;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.op.Operator.PendingCall;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/** The threads of one call: who sees what when a round or a call is done. */
public final class CallStress {

    private CallStress() {}

    /**
     * A whole operator of one rank: who finds its call done, without waiting for it, sees the
     * product.
     */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "Done, with the product of its shard.")
    @Outcome(expect = FORBIDDEN, desc = "Done, with another product.")
    @State
    public static class FinishedCall {

        private static final Matrix ONE = Matrix.copyOf(Arena.global(), new float[][] {{1}});
        private static final Matrix SHARD = Matrix.allocate(Arena.global(), DType.FP32, 2, 1);
        private static final AllGatherMatmul OPERATOR =
                AllGatherMatmul.on(Slots.alone())
                        .a(Shards.of(2), DType.FP32)
                        .b(ONE)
                        .algorithm(Algorithm.RING)
                        .engine("scalar")
                        .computeWorkers(1)
                        .prepare();

        /** Every call's product lies here. */
        private static final Matrix PRODUCT = OPERATOR.call(SHARD).product();

        /** The starter's. */
        private static int calls;

        private volatile PendingCall<Matrix> pending;
        private volatile boolean seen;

        @Actor
        public void starter() {
            // Few enough to be floats without loss.
            calls = (calls + 1) % 1_000_000;
            SHARD.set(0, 0, calls);
            SHARD.set(1, 0, -calls);
            pending = OPERATOR.start(SHARD);
            while (!seen) {
                Thread.yield();
            }
        }

        @Actor
        public void other(I_Result r) {
            while (pending == null || !pending.isDone()) {
                Thread.yield();
            }
            r.r1 = PRODUCT.get(0, 0) == calls && PRODUCT.get(1, 0) == -calls ? 1 : 0;
            pending.await();
            seen = true;
        }
    }
}
