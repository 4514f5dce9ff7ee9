package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.ffi.Futex;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/** No waiter sleeps through the change of its word. */
public final class WakeupStress {

    private WakeupStress() {}

    /**
     * The handshake of {@link MemoryFabric#signal} and {@link MemoryFabric#await}: the writer
     * stores the word and looks for waiters, the waiter adds itself and looks at the word. One of
     * them must see the other, or the waiter would sleep though its word has come.
     */
    @JCStressTest
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "The writer sees the waiter and wakes it.")
    @Outcome(
            id = "0, 1",
            expect = ACCEPTABLE,
            desc = "The waiter sees the word and does not sleep.")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both: a wake-up that nobody needs.")
    @Outcome(id = "0, 0", expect = FORBIDDEN, desc = "A lost wake-up.")
    @State
    public static class NoLostWakeup extends Experiment {

        private static final long WORD = 0;
        private static final MemoryRegion PARTS = Slots.partPerSlot(64);

        @Actor
        public void writer(II_Result r) {
            Words.intVolatile(PARTS.part(slot), WORD, epoch);
            r.r1 = PARTS.waiters(slot) != 0 ? 1 : 0;
        }

        @Actor
        public void waiter(II_Result r) {
            PARTS.addWaiters(slot, 1);
            r.r2 = Words.intVolatile(PARTS.part(slot), WORD) - epoch >= 0 ? 1 : 0;
        }

        @Arbiter
        public void waiterLeaves() {
            PARTS.addWaiters(slot, -1);
        }
    }

    /**
     * One count of waiters serves all words of a part: a waiter for another word, who comes and
     * goes meanwhile, must not hide this one. The writer of this word is that other waiter's own
     * thread.
     */
    @JCStressTest
    @Outcome(id = "1, 0, 0", expect = ACCEPTABLE, desc = "The writer sees the waiter and wakes it.")
    @Outcome(id = "0, 1, 0", expect = ACCEPTABLE, desc = "The waiter sees the word.")
    @Outcome(id = "1, 1, 0", expect = ACCEPTABLE, desc = "Both: a wake-up that nobody needs.")
    @Outcome(id = "0, 0, 0", expect = FORBIDDEN, desc = "A lost wake-up.")
    @Outcome(expect = FORBIDDEN, desc = "The count is wrong when all have gone.")
    @State
    public static class SharedWaiters extends Experiment {

        private static final long WORD = 0;
        private static final MemoryRegion PARTS = Slots.partPerSlot(64);

        @Actor
        public void otherWaiterAndWriter(III_Result r) {
            PARTS.addWaiters(slot, 1);
            PARTS.addWaiters(slot, -1);
            Words.intVolatile(PARTS.part(slot), WORD, epoch);
            r.r1 = PARTS.waiters(slot) != 0 ? 1 : 0;
        }

        @Actor
        public void waiter(III_Result r) {
            PARTS.addWaiters(slot, 1);
            r.r2 = Words.intVolatile(PARTS.part(slot), WORD) - epoch >= 0 ? 1 : 0;
        }

        @Arbiter
        public void waiterLeaves(III_Result r) {
            PARTS.addWaiters(slot, -1);
            r.r3 = PARTS.waiters(slot);
            // One wrong count must not spoil the slot's next experiment too.
            PARTS.addWaiters(slot, -r.r3);
        }
    }

    /**
     * The futex alone, as {@link WordWaiter.FutexWaiter} uses it, with a timeout so long that only
     * a wake-up, or a word that has changed before, ends a block in time.
     */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "The change of the word ended the wait.")
    @Outcome(expect = FORBIDDEN, desc = "A wait slept through its wake-up, until its timeout.")
    @State
    public static class BlockThenWake extends Experiment {

        private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(60);
        private static final MemorySegment TIMEOUT = Futex.timeout(TIMEOUT_NS, Arena.global());
        private static final WordWaiter WAITER = new WordWaiter.FutexWaiter();
        private static final MemorySegment WORDS = Slots.region(Integer.BYTES).part(0);

        private final long word = (long) Integer.BYTES * slot;

        @Actor
        public void writer() {
            Words.intVolatile(WORDS, word, epoch);
            WAITER.wakeAll(WORDS, word);
        }

        @Actor
        public void waiter(I_Result r) {
            long began = System.nanoTime();
            for (int seen = Words.intVolatile(WORDS, word);
                    seen != epoch;
                    seen = Words.intVolatile(WORDS, word)) {
                Futex.await(WORDS.address() + word, seen, TIMEOUT);
            }
            r.r1 = System.nanoTime() - began < TIMEOUT_NS ? 1 : 0;
        }
    }
}
