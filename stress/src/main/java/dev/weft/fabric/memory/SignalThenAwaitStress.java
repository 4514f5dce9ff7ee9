package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/** Who has waited for a signal, looking or asleep, sees all that was written before it. */
@JCStressTest
@Outcome(id = "1", expect = ACCEPTABLE, desc = "The wait ended with its data in place.")
@Outcome(expect = FORBIDDEN, desc = "A wait ended without the data that it was for.")
@State
public class SignalThenAwaitStress {

    private static final Slots SLOTS = new Slots();
    private static final Region WORDS = Slots.region(Integer.BYTES);
    private static final Region DATA = Slots.region(2 * Long.BYTES);
    private static final Awaited CHUNK = Awaited.chunk(0, 0, 0);

    private final long word;
    private final long data;
    private final int epoch;

    public SignalThenAwaitStress() {
        long number = SLOTS.next();
        word = (long) Integer.BYTES * Slots.slot(number);
        data = 2L * Long.BYTES * Slots.slot(number);
        epoch = Slots.epoch(number);
    }

    @Actor
    public void writer() {
        DATA.part(1).set(ValueLayout.JAVA_LONG, data, epoch);
        DATA.part(1).set(ValueLayout.JAVA_LONG, data + Long.BYTES, -epoch);
        Slots.rank(0).signal(WORDS, 1, word, epoch);
    }

    @Actor
    public void waiter(I_Result r) {
        Slots.rank(1).await(WORDS, 1, word, epoch, CHUNK);
        long first = DATA.part(1).get(ValueLayout.JAVA_LONG, data);
        long second = DATA.part(1).get(ValueLayout.JAVA_LONG, data + Long.BYTES);
        r.r1 = first == epoch && second == -epoch ? 1 : 0;
    }
}
