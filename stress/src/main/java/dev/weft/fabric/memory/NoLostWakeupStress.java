package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * The handshake of {@link MemoryFabric#signal} and {@link MemoryFabric#await}: the writer stores
 * the word and looks for waiters, the waiter adds itself and looks at the word. One of them must
 * see the other, or the waiter would sleep though its word has come.
 */
@JCStressTest
@Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "The writer sees the waiter and wakes it.")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "The waiter sees the word and does not sleep.")
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both: a wake-up that nobody needs.")
@Outcome(id = "0, 0", expect = FORBIDDEN, desc = "A lost wake-up.")
@State
public class NoLostWakeupStress {

    private static final long WORD = 0;
    private static final Slots SLOTS = new Slots();
    private static final MemoryRegion PARTS = Slots.partPerSlot(64);

    private final int part;
    private final int epoch;

    public NoLostWakeupStress() {
        long number = SLOTS.next();
        part = Slots.slot(number);
        epoch = Slots.epoch(number);
    }

    @Actor
    public void writer(II_Result r) {
        Words.intVolatile(PARTS.part(part), WORD, epoch);
        r.r1 = PARTS.waiters(part) != 0 ? 1 : 0;
    }

    @Actor
    public void waiter(II_Result r) {
        PARTS.addWaiters(part, 1);
        r.r2 = Words.intVolatile(PARTS.part(part), WORD) - epoch >= 0 ? 1 : 0;
    }

    @Arbiter
    public void waiterLeaves() {
        PARTS.addWaiters(part, -1);
    }
}
