package dev.weft.compat;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Who sees a chunk of the present round published sees what it is made of. */
@JCStressTest
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both chunks came with their data.")
@Outcome(expect = FORBIDDEN, desc = "A chunk was ready without its data.")
@State
public class HelionProgressStress {

    private static final HelionProgress PROGRESS = Helion.progress(Slots.alone(), 2);

    /** By chunk; plain on purpose. */
    private static final int[] CHUNKS = new int[2];

    /** The copier's. */
    private static int rounds;

    private volatile int begun;
    private volatile boolean seen;

    @Actor
    public void copier() {
        int round = ++rounds;
        PROGRESS.begin(2);
        begun = round;
        for (int split = 0; split < CHUNKS.length; split++) {
            CHUNKS[split] = round;
            PROGRESS.publish(0, split);
        }
        while (!seen) {
            Thread.yield();
        }
    }

    @Actor
    public void tile(II_Result r) {
        while (begun == 0) {
            Thread.yield();
        }
        PROGRESS.await(0, 0);
        r.r1 = CHUNKS[0] == begun ? 1 : 0;
        PROGRESS.await(0, 1);
        r.r2 = CHUNKS[1] == begun ? 1 : 0;
        seen = true;
    }
}
