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
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/** Who sees a word sees what was written before it, and may count on what it says. */
public final class SignalStress {

    private SignalStress() {}

    /** Who has waited for a signal, looking or asleep, sees all that was written before it. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "The wait ended with its data in place.")
    @Outcome(expect = FORBIDDEN, desc = "A wait ended without the data that it was for.")
    @State
    public static class SignalThenAwait extends Experiment {

        private static final Region WORDS = Slots.region(Integer.BYTES);
        private static final Region DATA = Slots.region(2 * Long.BYTES);
        private static final Awaited CHUNK = Awaited.chunk(0, 0, 0);

        private final long word = (long) Integer.BYTES * slot;
        private final long data = 2L * Long.BYTES * slot;

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

    /** Who sees a signal without waiting for it sees all that was written before it. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Too early for both.")
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "The data came first.")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "The signal and its data.")
    @Outcome(id = "1, 0", expect = FORBIDDEN, desc = "A signal without the data that it announces.")
    @State
    public static class SignalThenReached extends Experiment {

        private static final Region WORDS = Slots.region(Integer.BYTES);
        private static final Region DATA = Slots.region(Long.BYTES);

        private final long word = (long) Integer.BYTES * slot;
        private final long data = (long) Long.BYTES * slot;

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

    /**
     * Who sees that a rank has left sees all that it has signalled: a wait that looks at the state
     * first and at its word afterwards takes no leaver for a lost one.
     */
    @JCStressTest
    @Outcome(id = "0, [01]", expect = ACCEPTABLE, desc = "Still present.")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Left, its last signal is there.")
    @Outcome(expect = FORBIDDEN, desc = "Left, and its last signal is not there.")
    @State
    public static class SignalThenLeave extends Experiment {

        private static final MemoryRegion BLOCKS = Slots.partPerSlot(ControlBlock.BYTES);

        private final Health health = Slots.health(BLOCKS, slot);

        public SignalThenLeave() {
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

    /**
     * A chunk's source is free once a word says so: whoever then overwrites it does not disturb the
     * one who read it before. So the progress thread tells movers of messages that have gone, by
     * the same {@link MemoryFabric#store}, and ping-pong buffers are given back.
     */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "The source was read before it was overwritten.")
    @Outcome(expect = FORBIDDEN, desc = "The reader saw what came after its own word.")
    @State
    public static class FreedSource extends Experiment {

        private static final MemoryRegion WORDS = (MemoryRegion) Slots.region(Integer.BYTES);
        private static final Region SOURCES = Slots.region(Long.BYTES);
        private static final MemoryFabric PROGRESS = (MemoryFabric) Slots.rank(0);
        private static final Awaited ENDED = Awaited.of("the end of a transfer", 0);

        private final long word = (long) Integer.BYTES * slot;
        private final long source = (long) Long.BYTES * slot;

        public FreedSource() {
            SOURCES.part(0).set(ValueLayout.JAVA_LONG, source, epoch);
        }

        @Actor
        public void transport(I_Result r) {
            r.r1 = SOURCES.part(0).get(ValueLayout.JAVA_LONG, source) == epoch ? 1 : 0;
            PROGRESS.store(WORDS, 0, word, epoch);
        }

        @Actor
        public void mover() {
            Slots.rank(1).await(WORDS, 0, word, epoch, ENDED);
            SOURCES.part(0).set(ValueLayout.JAVA_LONG, source, -1);
        }
    }

    /**
     * The reuse rule of the operators: call e uses slot e mod 2, and a rank starts it once every
     * peer has started call e - 1. The hard case is a peer without rows, whom nobody waits for
     * otherwise: it reads the owner's slot twice in each of a few calls and must see that call's
     * value both times.
     */
    @JCStressTest
    @Outcome(id = "0", expect = ACCEPTABLE, desc = "Every call read its own values.")
    @Outcome(expect = FORBIDDEN, desc = "A call read values of another call.")
    @State
    public static class TwoSlotReuse extends Experiment {

        private static final int CALLS = 6;
        private static final long START = 0;
        private static final long VALUES = 4;
        private static final long BYTES = 12;

        private static final Region MEMORY = Slots.region(BYTES);
        private static final Awaited[] STARTS = {
            Awaited.of("a start", 0), Awaited.of("a start", 1)
        };

        private final long at = BYTES * slot;
        private final int before;

        public TwoSlotReuse() {
            before = CALLS * (epoch - 1);
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
}
