package dev.weft.op;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Experiment;
import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A lane's counter: once it has reached the place of a chunk, that chunk and all before it are
 * there, with their flags.
 */
@JCStressTest
@Outcome(id = "0, [0-3]", expect = ACCEPTABLE, desc = "Too early for the counter.")
@Outcome(id = "1, [1-3]", expect = ACCEPTABLE, desc = "The first chunk at least.")
@Outcome(id = "2, [23]", expect = ACCEPTABLE, desc = "The first two chunks at least.")
@Outcome(id = "3, 3", expect = ACCEPTABLE, desc = "All chunks.")
@Outcome(expect = FORBIDDEN, desc = "A counter that is ahead of its chunks.")
@State
public class SummaryCounterStress extends Experiment {

    private static final int CHUNKS = 3;
    private static final long COUNTER = 0;
    private static final long FLAGS = 4;
    private static final long ROWS = 16;
    private static final long BYTES = ROWS + CHUNKS * (long) Long.BYTES;

    private static final Region MEMORY = Slots.region(BYTES);
    private static final ChunkMover MOVER = Slots.rank(0).mover(index -> {});

    private final long at = BYTES * slot;
    private final Move[] moves = new Move[CHUNKS];

    public SummaryCounterStress() {
        for (int i = 0; i < CHUNKS; i++) {
            moves[i] = new Move(MEMORY, 0, row(i), 8, 1, row(i), 8, 1, 8, flag(i), at + COUNTER);
        }
    }

    private long row(int chunk) {
        return at + ROWS + chunk * (long) Long.BYTES;
    }

    private long flag(int chunk) {
        return at + FLAGS + chunk * (long) Integer.BYTES;
    }

    @Actor
    public void lane() {
        for (int i = 0; i < CHUNKS; i++) {
            MEMORY.part(0).set(ValueLayout.JAVA_LONG, row(i), epoch);
            MOVER.move(i, moves[i], epoch, value(i + 1));
        }
    }

    @Actor
    public void compute(II_Result r) {
        int place = CHUNKS;
        while (place > 0 && !reached(COUNTER + at, value(place))) {
            place--;
        }
        r.r1 = place;
        int chunks = 0;
        while (chunks < CHUNKS && reached(flag(chunks), epoch) && isThere(chunks)) {
            chunks++;
        }
        r.r2 = chunks;
    }

    /** The counter's value once so many chunks of the call have come. */
    private int value(int place) {
        return (epoch - 1) * CHUNKS + place;
    }

    private static boolean reached(long word, int value) {
        return Slots.rank(1).reached(MEMORY, 1, word, value);
    }

    private boolean isThere(int chunk) {
        return MEMORY.part(1).get(ValueLayout.JAVA_LONG, row(chunk)) == epoch;
    }
}
