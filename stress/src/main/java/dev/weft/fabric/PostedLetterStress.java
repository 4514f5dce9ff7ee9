package dev.weft.fabric;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * Who sees that a letter is posted finds it in the channel, and all that was written before: so the
 * mail thread sends no rows that were not yet there.
 */
@JCStressTest
@Outcome(id = "0, [01], [01]", expect = ACCEPTABLE, desc = "Nothing seems posted yet.")
@Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "The letter and the rows that it is for.")
@Outcome(expect = FORBIDDEN, desc = "Posted, without the letter or without its rows.")
@State
public class PostedLetterStress {

    private static final Slots SLOTS = new Slots();
    private static final Region LETTERS = Slots.region(MpiLetter.MAX_BYTES);
    private static final Region ROWS = Slots.region(Long.BYTES);

    private final long key;
    private final long row;
    private final MpiChannel channel;
    private final Move move;

    public PostedLetterStress() {
        long number = SLOTS.next();
        int slot = Slots.slot(number);
        key = Slots.epoch(number);
        row = (long) Long.BYTES * slot;
        channel = new MpiChannel(1, 0, new OnePlace(slot));
        MemorySegment[] part = {ROWS.part(0), ROWS.part(0)};
        MemoryRegion region = new MemoryRegion(key, 0, 1, part, () -> {});
        move = new Move(region, 0, row, 8, 1, row, 8, 1, 8, 0, -1);
    }

    @Actor
    public void poster() {
        ROWS.part(0).set(ValueLayout.JAVA_LONG, row, key);
        MpiLetter letter = channel.take();
        letter.rectangle(MpiLetter.PUT, move, 1, 0, -1, 0);
        channel.post(letter);
    }

    @Actor
    public void mailThread(III_Result r) {
        r.r1 = channel.hasPosted() ? 1 : 0;
        r.r3 = ROWS.part(0).get(ValueLayout.JAVA_LONG, row) == key ? 1 : 0;
        r.r2 = channel.sendsFrom(key) ? 1 : 0;
    }

    /** Gives the same memory again and again: a channel keeps but one letter here. */
    private record OnePlace(int slot) implements Arena {

        @Override
        public MemorySegment allocate(long bytes, long alignment) {
            return LETTERS.part(0).asSlice((long) MpiLetter.MAX_BYTES * slot, bytes);
        }

        @Override
        public MemorySegment.Scope scope() {
            return LETTERS.part(0).scope();
        }

        @Override
        public void close() {}
    }
}
