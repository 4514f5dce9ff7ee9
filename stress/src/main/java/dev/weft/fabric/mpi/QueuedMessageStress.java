package dev.weft.fabric.mpi;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.memory.Experiment;
import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.memory.Slots;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.BitSet;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * Who sees that a message is queued finds it in the channel, and all that was written before: so
 * the progress thread sends no rows that were not yet there.
 */
@JCStressTest
@Outcome(id = "0, [01], [01]", expect = ACCEPTABLE, desc = "Nothing seems queued yet.")
@Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "The message and the rows that it is for.")
@Outcome(expect = FORBIDDEN, desc = "Queued, without the message or without its rows.")
@State
public class QueuedMessageStress extends Experiment {

    private static final Region MESSAGES = Slots.region(MpiMessage.MAX_BYTES);
    private static final Region ROWS = Slots.region(Long.BYTES);

    private final long row = (long) Long.BYTES * slot;
    private final MpiChannel channel;
    private final Move move;

    public QueuedMessageStress() {
        channel = new MpiChannel(1, 0, new OnePlace(slot));
        MemorySegment[] part = {ROWS.part(0), ROWS.part(0)};
        MemoryRegion region =
                new MemoryRegion(epoch, BitSet.valueOf(new long[] {1}), part, () -> {});
        move = new Move(region, 0, row, 8, 1, row, 8, 1, 8, 0, -1);
    }

    @Actor
    public void sender() {
        ROWS.part(0).set(ValueLayout.JAVA_LONG, row, epoch);
        MpiMessage message = channel.newMessage();
        message.rectangle(MpiMessage.PUT, move, 1, 0, -1, 0);
        channel.send(message);
    }

    @Actor
    public void progressThread(III_Result r) {
        r.r1 = channel.hasQueued() ? 1 : 0;
        r.r3 = ROWS.part(0).get(ValueLayout.JAVA_LONG, row) == epoch ? 1 : 0;
        r.r2 = channel.sendsFrom(epoch) ? 1 : 0;
    }

    /** Gives the same memory again and again: a channel keeps but one message here. */
    private record OnePlace(int slot) implements Arena {

        @Override
        public MemorySegment allocate(long bytes, long alignment) {
            return MESSAGES.part(0).asSlice((long) MpiMessage.MAX_BYTES * slot, bytes);
        }

        @Override
        public MemorySegment.Scope scope() {
            return MESSAGES.part(0).scope();
        }

        @Override
        public void close() {}
    }
}
