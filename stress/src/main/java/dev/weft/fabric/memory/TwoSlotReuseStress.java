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

/**
 * The reuse rule of the operators: call e uses slot e mod 2, and a rank starts it once every peer
 * has started call e - 1. The hard case is a peer without rows, whom nobody waits for otherwise: it
 * reads the owner's slot twice in each of a few calls and must see that call's value both times.
 */
@JCStressTest
@Outcome(id = "0", expect = ACCEPTABLE, desc = "Every call read its own values.")
@Outcome(expect = FORBIDDEN, desc = "A call read values of another call.")
@State
public class TwoSlotReuseStress {

    private static final int CALLS = 6;
    private static final long START = 0;
    private static final long VALUES = 4;
    private static final long BYTES = 12;

    private static final Slots SLOTS = new Slots();
    private static final Region MEMORY = Slots.region(BYTES);
    private static final Awaited[] STARTS = {Awaited.of("a start", 0), Awaited.of("a start", 1)};

    private final long at;
    private final int before;

    public TwoSlotReuseStress() {
        long number = SLOTS.next();
        at = BYTES * Slots.slot(number);
        before = CALLS * (Slots.epoch(number) - 1);
        // The harness does not run every experiment that it makes: this slot's last one may be
        // missing, and the words behind.
        Words.intVolatile(MEMORY.part(0), at + START, before);
        Words.intVolatile(MEMORY.part(1), at + START, before);
    }

    @Actor
    public void owner() {
        for (int call = before + 1; call <= before + CALLS; call++) {
            start(0, call);
        }
    }

    @Actor
    public void reader(I_Result r) {
        for (int call = before + 1; call <= before + CALLS; call++) {
            start(1, call);
            Slots.rank(1).await(MEMORY, 0, at + START, call, STARTS[0]);
            r.r1 += wrongReads(call) + wrongReads(call);
        }
    }

    private void start(int rank, int call) {
        int peer = 1 - rank;
        Slots.rank(rank).await(MEMORY, peer, at + START, call - 1, STARTS[peer]);
        MEMORY.part(rank).set(ValueLayout.JAVA_INT, slot(call), call);
        Slots.rank(rank).signal(MEMORY, rank, at + START, call);
    }

    private int wrongReads(int call) {
        return MEMORY.part(0).get(ValueLayout.JAVA_INT, slot(call)) == call ? 0 : 1;
    }

    private long slot(int call) {
        return at + VALUES + (call & 1) * (long) Integer.BYTES;
    }
}
