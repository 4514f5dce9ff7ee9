package dev.weft.tune;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory that threads read and write while they are timed, two places for each, large enough that
 * what comes next is in no near cache: so it is in calls, whose rows have just arrived.
 */
final class ProbeBuffers implements AutoCloseable {

    /** A byte that makes an ordinary number of any type, as zeros may be faster than data. */
    private static final byte ORDINARY = 0x3f;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment[] sources;
    private final MemorySegment[] targets;

    ProbeBuffers(int threads, long bytes) {
        sources = new MemorySegment[threads];
        targets = new MemorySegment[threads];
        for (int t = 0; t < threads; t++) {
            sources[t] = arena.allocate(bytes, Long.BYTES).fill(ORDINARY);
            targets[t] = arena.allocate(bytes, Long.BYTES).fill(ORDINARY);
        }
    }

    int threads() {
        return sources.length;
    }

    /** Whether two blocks of so many fp32 rows find room. */
    boolean holds(long rows, long cols) {
        return 2 * rows * cols * Float.BYTES <= sources[0].byteSize();
    }

    /** As many rows as there is room for. */
    Matrix source(int thread, DType type, long cols) {
        return whole(sources[thread], type, cols);
    }

    Matrix target(int thread, DType type, long cols) {
        return whole(targets[thread], type, cols);
    }

    private static Matrix whole(MemorySegment room, DType type, long cols) {
        long rows = room.byteSize() / (type.bytes() * cols);
        return Matrix.of(room.asSlice(0, rows * cols * type.bytes()), type, rows, cols);
    }

    @Override
    public void close() {
        arena.close();
    }
}
