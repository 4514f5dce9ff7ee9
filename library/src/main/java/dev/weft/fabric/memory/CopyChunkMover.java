package dev.weft.fabric.memory;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import java.lang.foreign.MemorySegment;
import java.util.function.IntConsumer;

/** Copies chunks between parts that are both mapped. */
public final class CopyChunkMover implements ChunkMover {

    private final MemoryFabric fabric;
    private final IntConsumer ended;

    public CopyChunkMover(MemoryFabric fabric, IntConsumer ended) {
        this.fabric = fabric;
        this.ended = ended;
    }

    /** The flag's release after the copy pairs with the acquire of the thread that waits for it. */
    @Override
    public void move(int index, Move move, int flag, int counter) {
        MemorySegment from = move.region().part(move.from());
        MemorySegment to = move.region().part(move.to());
        if (move.isContiguous()) {
            long bytes = move.rows() * move.rowBytes();
            MemorySegment.copy(from, move.fromAt(), to, move.toAt(), bytes);
        } else {
            for (long r = 0; r < move.rows(); r++) {
                MemorySegment.copy(
                        from,
                        move.fromAt() + r * move.fromPitch(),
                        to,
                        move.toAt() + r * move.toPitch(),
                        move.rowBytes());
            }
        }
        fabric.signal(move.region(), move.to(), move.flagAt(), flag);
        if (move.counterAt() >= 0) {
            fabric.signal(move.region(), move.to(), move.counterAt(), counter);
        }
        ended.accept(index);
    }

    @Override
    public void awaitAll() {}

    @Override
    public void close() {}
}
