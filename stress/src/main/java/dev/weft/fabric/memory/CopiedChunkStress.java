package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * A chunk with gaps between its rows, moved by {@link CopyChunkMover}: who sees its counter sees
 * its flag, and who sees its flag sees all its rows.
 */
@JCStressTest
@Outcome(id = "0, 0, [01]", expect = ACCEPTABLE, desc = "Too early for the words.")
@Outcome(id = "0, 1, 1", expect = ACCEPTABLE, desc = "The flag and its rows.")
@Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "The counter, the flag and the rows.")
@Outcome(expect = FORBIDDEN, desc = "A word without what it announces.")
@State
public class CopiedChunkStress {

    private static final long FLAG = 0;
    private static final long COUNTER = 4;
    private static final long ROWS_AT = 8;
    private static final long PITCH = 2 * Long.BYTES;
    private static final long BYTES = ROWS_AT + 2 * PITCH;

    private static final Slots SLOTS = new Slots();
    private static final Region MEMORY = Slots.region(BYTES);
    private static final ChunkMover MOVER = Slots.rank(0).mover(index -> {});

    private final long at;
    private final int epoch;
    private final Move move;

    public CopiedChunkStress() {
        long number = SLOTS.next();
        at = BYTES * Slots.slot(number);
        epoch = Slots.epoch(number);
        long rows = at + ROWS_AT;
        move =
                new Move(
                        MEMORY,
                        0,
                        rows,
                        PITCH,
                        1,
                        rows,
                        PITCH,
                        2,
                        Long.BYTES,
                        at + FLAG,
                        at + COUNTER);
    }

    @Actor
    public void lane() {
        MEMORY.part(0).set(ValueLayout.JAVA_LONG, at + ROWS_AT, epoch);
        MEMORY.part(0).set(ValueLayout.JAVA_LONG, at + ROWS_AT + PITCH, -epoch);
        MOVER.move(0, move, epoch, epoch);
    }

    @Actor
    public void reader(III_Result r) {
        MemorySegment part = MEMORY.part(1);
        r.r1 = Slots.rank(1).reached(MEMORY, 1, at + COUNTER, epoch) ? 1 : 0;
        r.r2 = Slots.rank(1).reached(MEMORY, 1, at + FLAG, epoch) ? 1 : 0;
        boolean second = part.get(ValueLayout.JAVA_LONG, at + ROWS_AT + PITCH) == -epoch;
        r.r3 = second && part.get(ValueLayout.JAVA_LONG, at + ROWS_AT) == epoch ? 1 : 0;
    }
}
