package dev.weft.op;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.op.exec.CallState;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/** Workers share the consumption order: each block is taken by one of them. */
@JCStressTest
@Outcome(id = "8", expect = ACCEPTABLE, desc = "Every block was taken once.")
@Outcome(expect = FORBIDDEN, desc = "A block was taken twice, or not at all.")
@State
public class NextBlockStress {

    private static final int BLOCKS = 8;

    private final CallState state = new CallState();

    /** By worker and block. */
    private final int[][] taken = new int[2][BLOCKS];

    @Actor
    public void compute0() {
        take(taken[0]);
    }

    @Actor
    public void compute1() {
        take(taken[1]);
    }

    private void take(int[] blocks) {
        for (int i = state.nextBlock.getAndIncrement();
                i < BLOCKS;
                i = state.nextBlock.getAndIncrement()) {
            blocks[i]++;
        }
    }

    @Arbiter
    public void count(I_Result r) {
        for (int i = 0; i < BLOCKS; i++) {
            r.r1 += taken[0][i] + taken[1][i] == 1 ? 1 : 0;
        }
    }
}
