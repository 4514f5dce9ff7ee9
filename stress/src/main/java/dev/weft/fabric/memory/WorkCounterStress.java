package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.J_Result;

/** Threads of one rank count their work in one word, by which peers tell slow from dead. */
@JCStressTest
@Outcome(id = "4", expect = ACCEPTABLE, desc = "All work is counted.")
@Outcome(expect = FORBIDDEN, desc = "Work was lost, or counted twice.")
@State
public class WorkCounterStress {

    private static final Slots SLOTS = new Slots();
    private static final MemoryRegion BLOCKS = Slots.partPerSlot(ControlBlock.BYTES);

    private final Health health;
    private final long before;

    public WorkCounterStress() {
        health = Slots.health(BLOCKS, Slots.slot(SLOTS.next()));
        before = health.ownWork();
    }

    @Actor
    public void lane() {
        health.worked();
        health.worked();
    }

    @Actor
    public void compute() {
        health.worked();
        health.worked();
    }

    @Arbiter
    public void count(J_Result r) {
        r.r1 = health.ownWork() - before;
    }
}
