package dev.weft.exec.host;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** The rounds of a team: who sees what when one is done. */
public final class TeamStress {

    private TeamStress() {}

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
        private static final Team TEAM = new Team("stress");

        static {
            TEAM.reserve(TASKS.length);
        }

        private volatile boolean started;
        private volatile boolean seen;

        @Actor
        public void starter(II_Result r) {
            input++;
            start();
            started = true;
            while (!seen) {
                Thread.yield();
            }
            input++;
            start();
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

        private static void start() {
            TEAM.start(TASKS, null, Throwable::printStackTrace);
        }

        private static int isRight() {
            return OUTPUTS[0] == input + 1 && OUTPUTS[1] == input + 1 ? 1 : 0;
        }
    }
}
