package dev.weft.tune;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Buffers that threads read and write while they are timed: a source and a target for each. They
 * are so large that the next rows are not in a near cache, like rows that have just arrived in a
 * call.
 */
final class ProbeBuffers implements AutoCloseable {

    /** A byte that makes a normal number of any type: zeros could be faster than data. */
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

    /** Whether two blocks of {@code rows} fp32 rows fit. */
    boolean holds(long rows, long cols) {
        return 2 * rows * cols * Float.BYTES <= sources[0].byteSize();
    }

    /** As many rows as fit. */
    Matrix source(int thread, DType type, long cols) {
        return whole(sources[thread], type, cols);
    }

    Matrix target(int thread, DType type, long cols) {
        return whole(targets[thread], type, cols);
    }

    private static Matrix whole(MemorySegment buffer, DType type, long cols) {
        long rows = buffer.byteSize() / (type.bytes() * cols);
        return Matrix.of(buffer.asSlice(0, rows * cols * type.bytes()), type, rows, cols);
    }

    @Override
    public void close() {
        arena.close();
    }
}
