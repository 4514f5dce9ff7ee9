package dev.weft.op;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.exec.host.Team;
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
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/** The threads of one call: who sees what when a round or a call is done. */
public final class CallStress {

    private CallStress() {}

    /**
     * Two rounds of a team of two: its tasks see what was written before the start, and who awaits
     * the round, the starter or another thread, sees what both tasks wrote.
     */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both rounds computed with their own input.")
    @Outcome(expect = FORBIDDEN, desc = "A round's input or output was not seen.")
    @State
    public static class TeamRound {

        /** Plain on purpose: the team's rounds must order them. */
        private static int input;

        private static final int[] OUTPUTS = new int[2];
        private static final Runnable[] TASKS = {
            () -> OUTPUTS[0] = input + 1, () -> OUTPUTS[1] = input + 1
        };
        private static final Team TEAM =
                new Team("stress", TASKS, task -> {}, Throwable::printStackTrace);

        private volatile boolean started;
        private volatile boolean seen;

        @Actor
        public void starter(II_Result r) {
            input++;
            TEAM.start();
            started = true;
            while (!seen) {
                Thread.yield();
            }
            input++;
            TEAM.start();
            TEAM.await();
            r.r1 = isRight();
        }

        @Actor
        public void other(II_Result r) {
            while (!started) {
                Thread.yield();
            }
            TEAM.await();
            r.r2 = isRight();
            seen = true;
        }

        private static int isRight() {
            return OUTPUTS[0] == input + 1 && OUTPUTS[1] == input + 1 ? 1 : 0;
        }
    }

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
