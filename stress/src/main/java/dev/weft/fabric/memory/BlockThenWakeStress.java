package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.ffi.Futex;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/**
 * The futex alone, as {@link WordWaiter.FutexWaiter} uses it, with a timeout so long that only a
 * wake-up, or a word that has changed before, ends a block in time.
 */
@JCStressTest
@Outcome(id = "1", expect = ACCEPTABLE, desc = "The change of the word ended the wait.")
@Outcome(expect = FORBIDDEN, desc = "A wait slept through its wake-up, until its timeout.")
@State
public class BlockThenWakeStress {

    private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(60);
    private static final MemorySegment TIMEOUT = Futex.timeout(TIMEOUT_NS, Arena.global());
    private static final WordWaiter WAITER = new WordWaiter.FutexWaiter();

    private static final Slots SLOTS = new Slots();
    private static final MemorySegment WORDS = Slots.region(Integer.BYTES).part(0);

    private final long word;
    private final int epoch;

    public BlockThenWakeStress() {
        long number = SLOTS.next();
        word = (long) Integer.BYTES * Slots.slot(number);
        epoch = Slots.epoch(number);
    }

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
