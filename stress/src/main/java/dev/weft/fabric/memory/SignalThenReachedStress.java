package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.transport.Region;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Who sees a signal without waiting for it sees all that was written before it. */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Too early for both.")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "The data came first.")
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "The signal and its data.")
@Outcome(id = "1, 0", expect = FORBIDDEN, desc = "A signal without the data that it announces.")
@State
public class SignalThenReachedStress {

    private static final Slots SLOTS = new Slots();
    private static final Region WORDS = Slots.region(Integer.BYTES);
    private static final Region DATA = Slots.region(Long.BYTES);

    private final long word;
    private final long data;
    private final int epoch;

    public SignalThenReachedStress() {
        long number = SLOTS.next();
        word = (long) Integer.BYTES * Slots.slot(number);
        data = (long) Long.BYTES * Slots.slot(number);
        epoch = Slots.epoch(number);
    }

    @Actor
    public void writer() {
        DATA.part(1).set(ValueLayout.JAVA_LONG, data, epoch);
        Slots.rank(0).signal(WORDS, 1, word, epoch);
    }

    @Actor
    public void reader(II_Result r) {
        r.r1 = Slots.rank(1).reached(WORDS, 1, word, epoch) ? 1 : 0;
        r.r2 = DATA.part(1).get(ValueLayout.JAVA_LONG, data) == epoch ? 1 : 0;
    }
}
