package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.transport.Awaited;
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
import org.openjdk.jcstress.infra.results.I_Result;

/** Chunks, moved by {@link CopyChunkMover}: who sees a flag sees its rows. */
public final class ChunkStress {

    private ChunkStress() {}

    /**
     * A chunk with gaps between its rows: who sees its counter sees its flag, and who sees its flag
     * sees all its rows.
     */
    @JCStressTest
    @Outcome(id = "0, 0, [01]", expect = ACCEPTABLE, desc = "Too early for the words.")
    @Outcome(id = "0, 1, 1", expect = ACCEPTABLE, desc = "The flag and its rows.")
    @Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "The counter, the flag and the rows.")
    @Outcome(expect = FORBIDDEN, desc = "A word without what it announces.")
    @State
    public static class CopiedChunk extends Experiment {

        private static final long FLAG = 0;
        private static final long COUNTER = 4;
        private static final long ROWS_AT = 8;
        private static final long PITCH = 2 * Long.BYTES;
        private static final long BYTES = ROWS_AT + 2 * PITCH;

        private static final Region MEMORY = Slots.region(BYTES);
        private static final ChunkMover MOVER = Slots.rank(0).mover(index -> {});

        private final long at = BYTES * slot;
        private final long rows = at + ROWS_AT;
        private final Move move =
                new Move(MEMORY, 0, rows, PITCH, 1, rows, PITCH, 2, 8, at + FLAG, at + COUNTER);

        @Actor
        public void lane() {
            MEMORY.part(0).set(ValueLayout.JAVA_LONG, rows, epoch);
            MEMORY.part(0).set(ValueLayout.JAVA_LONG, rows + PITCH, -epoch);
            MOVER.move(0, move, epoch, epoch);
        }

        @Actor
        public void reader(III_Result r) {
            MemorySegment part = MEMORY.part(1);
            r.r1 = Slots.rank(1).reached(MEMORY, 1, at + COUNTER, epoch) ? 1 : 0;
            r.r2 = Slots.rank(1).reached(MEMORY, 1, at + FLAG, epoch) ? 1 : 0;
            boolean second = part.get(ValueLayout.JAVA_LONG, rows + PITCH) == -epoch;
            r.r3 = second && part.get(ValueLayout.JAVA_LONG, rows) == epoch ? 1 : 0;
        }
    }

    /**
     * A chunk on a ring of two: its owner moves it to the other rank, whose lane waits for its flag
     * and moves it on, back to another place at the owner, who waits for the second flag. So it
     * takes no more than two cores, and a stale byte of either move is seen.
     */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "The chunk has come all the way.")
    @Outcome(expect = FORBIDDEN, desc = "A flag without the chunk that was forwarded.")
    @State
    public static class ForwardedChunk extends Experiment {

        private static final long FLAG = 0;
        private static final long SECOND_FLAG = 4;
        private static final long CHUNK = 8;
        private static final long SECOND_CHUNK = 16;
        private static final long BYTES = 24;

        private static final Region MEMORY = Slots.region(BYTES);
        private static final ChunkMover OWNER = Slots.rank(0).mover(index -> {});
        private static final ChunkMover FORWARDER = Slots.rank(1).mover(index -> {});
        private static final Awaited CHUNK_OF_OWNER = Awaited.chunk(0, 0, 0);
        private static final Awaited CHUNK_OF_FORWARDER = Awaited.chunk(1, 0, 0);

        private final long at = BYTES * slot;
        private final Move there = move(0, CHUNK, 1, CHUNK, FLAG);
        private final Move onwards = move(1, CHUNK, 0, SECOND_CHUNK, SECOND_FLAG);

        private Move move(int from, long fromAt, int to, long toAt, long flag) {
            long bytes = Long.BYTES;
            return new Move(
                    MEMORY,
                    from,
                    at + fromAt,
                    bytes,
                    to,
                    at + toAt,
                    bytes,
                    1,
                    bytes,
                    at + flag,
                    -1);
        }

        @Actor
        public void owner(I_Result r) {
            MEMORY.part(0).set(ValueLayout.JAVA_LONG, at + CHUNK, epoch);
            OWNER.move(0, there, epoch, 0);
            Slots.rank(0).await(MEMORY, 0, at + SECOND_FLAG, epoch, CHUNK_OF_FORWARDER);
            long chunk = MEMORY.part(0).get(ValueLayout.JAVA_LONG, at + SECOND_CHUNK);
            r.r1 = chunk == epoch ? 1 : 0;
        }

        @Actor
        public void forwarder() {
            Slots.rank(1).await(MEMORY, 1, at + FLAG, epoch, CHUNK_OF_OWNER);
            FORWARDER.move(0, onwards, epoch, 0);
        }
    }
}
