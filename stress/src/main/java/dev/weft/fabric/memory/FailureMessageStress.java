package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.PeerFailedException;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Who sees that a rank has failed sees why, and who is to blame. */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Too early.")
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Failed, with the whole message.")
@Outcome(expect = FORBIDDEN, desc = "Failed, with another message or cause.")
@State
public class FailureMessageStress {

    private static final Slots SLOTS = new Slots();
    private static final MemoryRegion BLOCKS = Slots.partPerSlot(ControlBlock.BYTES);

    private static final Group WORLD = Group.world(1);

    private final Health health;
    private final RuntimeException cause;

    public FailureMessageStress() {
        long number = SLOTS.next();
        int slot = Slots.slot(number);
        health = Slots.health(BLOCKS, slot);
        cause = new IllegalStateException("cause " + Slots.epoch(number));
        BLOCKS.part(slot).set(ValueLayout.JAVA_INT, ControlBlock.CAUSE_AT, -1);
        Words.intVolatile(BLOCKS.part(slot), ControlBlock.STATE_AT, ControlBlock.PRESENT);
    }

    @Actor
    public void failing() {
        health.fail(cause);
    }

    @Actor
    public void peer(II_Result r) {
        if (health.failedRank(WORLD) == 0) {
            PeerFailedException seen = health.failureOf(0);
            r.r1 = 1;
            r.r2 = seen.peer() == 0 && seen.reason().equals(cause.getMessage()) ? 1 : 0;
        }
    }
}
