package dev.weft.exec.host;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Shards;
import java.util.List;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * The rows of a call, which a rank publishes before its start word: who has seen the word sees the
 * rows of that call, neither those of an earlier one nor those of the next. Rows differ in every
 * call, and a rank may be a whole call ahead.
 */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Both have seen the same rows in every call.")
@Outcome(expect = FORBIDDEN, desc = "A rank has seen the rows of another call.")
@State
public class StartRowsStress {

    private static final int CALLS = 4;
    private static final List<StartWord> WORDS = Slots.onBothRanks(Words::of);
    private static final int[] STARTED = new int[2 * Long.BYTES];

    /** In a class of its own, which is not being initialised. */
    private static final class Words {

        static StartWord of(Transport fabric) {
            return new StartWord(fabric, fabric.allocate(4096), 1);
        }
    }

    @Actor
    public void first(II_Result r) {
        r.r1 = wrongCalls(0);
    }

    @Actor
    public void second(II_Result r) {
        r.r2 = wrongCalls(1);
    }

    private static int wrongCalls(int rank) {
        StartWord word = WORDS.get(rank);
        int wrong = 0;
        for (int i = 0; i < CALLS; i++) {
            // Each rank's number is written by its own actor alone, eight numbers apart.
            int call = ++STARTED[rank * Long.BYTES];
            Shards rows = Shards.of(call & 0xff, 1);
            word.await(call - 1);
            word.publish(call, rows);
            try {
                word.check(call, rows);
                word.await(call);
                word.check(call, rows);
            } catch (IllegalArgumentException unlike) {
                wrong++;
            }
        }
        return wrong;
    }
}
