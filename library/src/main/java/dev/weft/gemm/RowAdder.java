package dev.weft.gemm;

import java.lang.foreign.MemorySegment;

/**
 * Adds rows of fp32, element by element. They go through small heap arrays, because the JIT
 * compiler turns plain loops over arrays into vector additions on every machine, but not those over
 * memory that may overlap. Not for two threads at a time.
 */
public final class RowAdder {

    private static final int PIECE = 1024;

    private final float[] sums = new float[PIECE];
    private final float[] addends = new float[PIECE];

    /**
     * Writes {@code a + b}, each rounded once. All three are given by memory and a byte in it, of
     * any alignment. The target may be one of the other two, from the same byte on. Allocates
     * nothing.
     */
    public void add(
            MemorySegment a,
            long aFrom,
            MemorySegment b,
            long bFrom,
            MemorySegment target,
            long targetFrom,
            long count) {
        for (long done = 0; done < count; done += PIECE) {
            int length = (int) Math.min(PIECE, count - done);
            long at = done * Float.BYTES;
            MemorySegment.copy(a, RowConverter.FLOAT, aFrom + at, sums, 0, length);
            MemorySegment.copy(b, RowConverter.FLOAT, bFrom + at, addends, 0, length);
            add(sums, addends, length);
            MemorySegment.copy(sums, 0, target, RowConverter.FLOAT, targetFrom + at, length);
        }
    }

    private static void add(float[] sums, float[] addends, int count) {
        for (int i = 0; i < count; i++) {
            sums[i] += addends[i];
        }
    }
}
