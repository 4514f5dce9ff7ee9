package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * Who sees that a rank has left sees all that it has signalled: a wait that looks at the state
 * first and at its word afterwards takes no leaver for a lost one.
 */
@JCStressTest
@Outcome(id = "0, [01]", expect = ACCEPTABLE, desc = "Still present.")
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Left, its last signal is there.")
@Outcome(expect = FORBIDDEN, desc = "Left, and its last signal is not there.")
@State
public class SignalThenLeaveStress {

    private static final Slots SLOTS = new Slots();
    private static final MemoryRegion BLOCKS = Slots.partPerSlot(ControlBlock.BYTES);

    private final int slot;
    private final int epoch;
    private final Health health;

    public SignalThenLeaveStress() {
        long number = SLOTS.next();
        slot = Slots.slot(number);
        epoch = Slots.epoch(number);
        health = Slots.health(BLOCKS, slot);
        health.present();
    }

    @Actor
    public void leaver() {
        Slots.rank(0).signal(BLOCKS, slot, ControlBlock.ENTERED_AT, epoch);
        health.leave();
    }

    @Actor
    public void waiter(II_Result r) {
        r.r1 = health.hasLeft(0) ? 1 : 0;
        r.r2 = Slots.rank(1).reached(BLOCKS, slot, ControlBlock.ENTERED_AT, epoch) ? 1 : 0;
    }
}
