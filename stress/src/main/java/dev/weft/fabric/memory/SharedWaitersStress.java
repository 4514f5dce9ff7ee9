package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * One count of waiters serves all words of a part: a waiter for another word, who comes and goes
 * meanwhile, must not hide this one. The writer of this word is that other waiter's own thread.
 */
@JCStressTest
@Outcome(id = "1, 0, 0", expect = ACCEPTABLE, desc = "The writer sees the waiter and wakes it.")
@Outcome(id = "0, 1, 0", expect = ACCEPTABLE, desc = "The waiter sees the word.")
@Outcome(id = "1, 1, 0", expect = ACCEPTABLE, desc = "Both: a wake-up that nobody needs.")
@Outcome(id = "0, 0, 0", expect = FORBIDDEN, desc = "A lost wake-up.")
@Outcome(expect = FORBIDDEN, desc = "The count is wrong when all have gone.")
@State
public class SharedWaitersStress {

    private static final long WORD = 0;
    private static final Slots SLOTS = new Slots();
    private static final MemoryRegion PARTS = Slots.partPerSlot(64);

    private final int part;
    private final int epoch;

    public SharedWaitersStress() {
        long number = SLOTS.next();
        part = Slots.slot(number);
        epoch = Slots.epoch(number);
    }

    @Actor
    public void otherWaiterAndWriter(III_Result r) {
        PARTS.addWaiters(part, 1);
        PARTS.addWaiters(part, -1);
        Words.intVolatile(PARTS.part(part), WORD, epoch);
        r.r1 = PARTS.waiters(part) != 0 ? 1 : 0;
    }

    @Actor
    public void waiter(III_Result r) {
        PARTS.addWaiters(part, 1);
        r.r2 = Words.intVolatile(PARTS.part(part), WORD) - epoch >= 0 ? 1 : 0;
    }

    @Arbiter
    public void waiterLeaves(III_Result r) {
        PARTS.addWaiters(part, -1);
        r.r3 = PARTS.waiters(part);
        // One wrong count must not spoil the slot's next experiment too.
        PARTS.addWaiters(part, -r.r3);
    }
}
