package dev.weft.gemm;

import java.lang.foreign.MemorySegment;

/**
 * Adds rows of fp32, element by element. They go through small heap arrays: the JIT compiler
 * vectorizes plain loops over arrays on every machine, but not loops over memory that may overlap.
 * Not thread-safe.
 */
public final class RowAdder {

    private static final int PIECE = 1024;

    private final float[] sums = new float[PIECE];
    private final float[] addends = new float[PIECE];

    /**
     * Writes {@code a + b}, each rounded once. All three are given as memory and an offset of any
     * alignment. The target may be one of the other two, at the same offset. Allocates nothing.
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

    /**
     * Adds {@code factor * a} to the target, each product and sum rounded once together. Allocates
     * nothing.
     */
    public void addTimes(
            float factor,
            MemorySegment a,
            long aFrom,
            MemorySegment target,
            long targetFrom,
            long count) {
        for (long done = 0; done < count; done += PIECE) {
            int length = (int) Math.min(PIECE, count - done);
            long at = done * Float.BYTES;
            MemorySegment.copy(a, RowConverter.FLOAT, aFrom + at, addends, 0, length);
            MemorySegment.copy(target, RowConverter.FLOAT, targetFrom + at, sums, 0, length);
            addTimes(factor, addends, sums, length);
            MemorySegment.copy(sums, 0, target, RowConverter.FLOAT, targetFrom + at, length);
        }
    }

    private static void addTimes(float factor, float[] addends, float[] sums, int count) {
        for (int i = 0; i < count; i++) {
            sums[i] = Math.fma(factor, addends[i], sums[i]);
        }
    }
}
