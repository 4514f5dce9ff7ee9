package dev.weft.stress;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Transport;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Queue;

/**
 * A lane's mover to which the case's fault happens. The number of a move is its place in the lane,
 * so that the calls before the fault tell which is the last.
 */
final class FaultyChunkMover implements ChunkMover {

    /** The longest that a chunk is held back so that others overtake it. */
    private static final long HELD_MICROS = 2_000;

    /** Long enough for whoever waits for a word to see what it holds. */
    static final long SEEN_MICROS = 30_000;

    private record Held(int index, Move move, int flag, int counter) {}

    private final Transport fabric;
    private final ChunkMover below;
    private final Injector injector;
    private final Queue<Held> held = new ArrayDeque<>();
    private int last;

    /** Every call begins with move 0. */
    private int calls;

    FaultyChunkMover(Transport fabric, ChunkMover below, Injector injector) {
        this.fabric = fabric;
        this.below = below;
        this.injector = injector;
    }

    @Override
    public void move(int index, Move move, int flag, int counter) {
        injector.dawdle();
        calls += index == 0 ? 1 : 0;
        if (injector.is(Fault.Type.REORDER)) {
            moveOutOfOrder(new Held(index, move, flag, counter));
            return;
        }
        Fault.Phase phase = injector.run().fault().phase();
        // The only chunk of a lane is its first and its last one.
        boolean its =
                phase == Fault.Phase.FIRST_CHUNK && index == 0
                        || phase == Fault.Phase.LAST_CHUNK && index == last;
        if (its && calls == injector.run().faultCall()) {
            move(phase, index, move, flag, counter);
        } else {
            below.move(index, move, flag, counter);
        }
        last = Math.max(last, index);
    }

    private void move(Fault.Phase phase, int index, Move move, int flag, int counter) {
        injector.at(phase);
        if (injector.now(Fault.Type.STALL, phase)) {
            injector.hang();
        }
        if (injector.now(Fault.Type.CORRUPT, phase)) {
            fabric.signal(move.region(), move.to(), move.flagAt(), injector.nonsense(flag));
            Injector.sleepMicros(SEEN_MICROS);
        }
        // The value before: nobody can tell it from a signal that never came.
        boolean dropped = injector.now(Fault.Type.DROP, phase);
        below.move(index, move, dropped ? flag - 1 : flag, dropped ? counter - 1 : counter);
        if (injector.now(Fault.Type.DUPLICATE, phase)) {
            if (move.to() == fabric.rank()) {
                // What is fetched from another host is still on its way, and its own signal too.
                below.awaitAll();
            }
            fabric.signal(move.region(), move.to(), move.flagAt(), flag);
        }
    }

    /**
     * Holds some chunks back while chunks for other ranks go. Only where no transfer waits for
     * another: the lane would otherwise wait for what it holds back itself.
     */
    private void moveOutOfOrder(Held next) {
        boolean behind = held.stream().anyMatch(h -> h.move().to() == next.move().to());
        if (behind || injector.coin() && held.isEmpty()) {
            injector.occur();
            held.add(next);
            if (held.size() > 3) {
                release();
            }
            return;
        }
        below.move(next.index(), next.move(), next.flag(), next.counter());
        if (injector.coin()) {
            release();
        }
    }

    private void release() {
        Injector.sleepMicros(injector.micros(HELD_MICROS));
        for (Iterator<Held> all = held.iterator(); all.hasNext(); ) {
            Held each = all.next();
            all.remove();
            below.move(each.index(), each.move(), each.flag(), each.counter());
        }
    }

    @Override
    public void awaitAll() {
        release();
        below.awaitAll();
    }

    @Override
    public void close() {
        below.close();
    }
}
