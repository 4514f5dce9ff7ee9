package dev.weft.op;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.op.exec.Team;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * Two rounds of a team of two: its tasks see what was written before the start, and who awaits the
 * round, the starter or another thread, sees what both tasks wrote.
 */
@JCStressTest
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both rounds computed with their own input.")
@Outcome(expect = FORBIDDEN, desc = "A round's input or output was not seen.")
@State
public class TeamRoundStress {

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
