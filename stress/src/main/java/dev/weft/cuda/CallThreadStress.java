package dev.weft.cuda;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * Two calls of a thread: its task sees what was written before the start, and who awaits the call,
 * the starter or another thread, sees what the task wrote.
 */
@JCStressTest
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both calls computed with their own input.")
@Outcome(expect = FORBIDDEN, desc = "A call's input or output was not seen.")
@State
public class CallThreadStress {

    /** Plain on purpose: the calls must order them. */
    private static int input;

    private static int output;
    private static final CallThread THREAD =
            new CallThread("stress", call -> output = input + 1, Throwable::printStackTrace);

    private volatile boolean started;
    private volatile boolean seen;

    @Actor
    public void starter(II_Result r) {
        THREAD.start(++input);
        started = true;
        while (!seen) {
            Thread.yield();
        }
        THREAD.start(++input);
        THREAD.await();
        r.r1 = output == input + 1 ? 1 : 0;
    }

    @Actor
    public void other(II_Result r) {
        while (!started) {
            Thread.yield();
        }
        THREAD.await();
        r.r2 = output == input + 1 ? 1 : 0;
        seen = true;
    }
}
