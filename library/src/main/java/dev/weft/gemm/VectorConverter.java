package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Moves elements between a matrix of any type and fp32 arrays, with the roundings of {@link
 * dev.weft.tensor.DType}. Callers' memory is only copied, never read by vectors: it may be on the
 * heap or off it, and the JIT compiler, having seen both, was found to box the vectors of such a
 * loop. Plain loops over arrays become vector code as well. Not for two threads at a time.
 */
final class VectorConverter {

    private static final VectorSpecies<Integer> INTS = IntVector.SPECIES_PREFERRED;
    private static final int LANES = INTS.length();

    private final short[] halves;
    private final int[] bits;

    /** One call moves {@code longest} elements at most. */
    VectorConverter(int longest) {
        halves = new short[longest];
        bits = new int[longest];
    }

    /** Copies {@code count} elements of a row, widened to fp32, to {@code target}. */
    void widen(Matrix source, long row, long fromCol, int count, float[] target, int at) {
        long from = source.offset(row, fromCol);
        switch (source.dtype()) {
            case FP32 ->
                    MemorySegment.copy(source.data(), RowConverter.FLOAT, from, target, at, count);
            case FP16 -> {
                MemorySegment.copy(source.data(), RowConverter.SHORT, from, halves, 0, count);
                RowConverter.widenFp16(halves, target, at, count);
            }
            case BF16 -> {
                MemorySegment.copy(source.data(), RowConverter.SHORT, from, halves, 0, count);
                RowConverter.widenBf16(halves, bits, count);
                reinterpret(bits, target, at, count);
            }
        }
    }

    private static void reinterpret(int[] bits, float[] target, int at, int count) {
        int whole = count - count % LANES;
        for (int i = 0; i < whole; i += LANES) {
            IntVector.fromArray(INTS, bits, i).reinterpretAsFloats().intoArray(target, at + i);
        }
        for (int i = whole; i < count; i++) {
            target[at + i] = Float.intBitsToFloat(bits[i]);
        }
    }

    /**
     * Rounds a rectangle of fp32 values into C.
     *
     * @param sums its rows are {@code pitch} apart from index {@code at} on
     */
    void narrow(
            float[] sums, int at, int pitch, int rows, int cols, Matrix c, long cRow, long cCol) {
        switch (c.dtype()) {
            case FP32 -> {
                for (int row = 0; row < rows; row++) {
                    long to = c.offset(cRow + row, cCol);
                    MemorySegment.copy(
                            sums, at + row * pitch, c.data(), RowConverter.FLOAT, to, cols);
                }
            }
            case FP16 -> {
                RowConverter.narrowFp16(sums, at, halves, rows * pitch);
                storeHalves(pitch, rows, cols, c, cRow, cCol);
            }
            case BF16 -> {
                RowConverter.narrowBf16(sums, at, halves, rows * pitch);
                storeHalves(pitch, rows, cols, c, cRow, cCol);
            }
        }
    }

    private void storeHalves(int pitch, int rows, int cols, Matrix c, long cRow, long cCol) {
        for (int row = 0; row < rows; row++) {
            long to = c.offset(cRow + row, cCol);
            MemorySegment.copy(halves, row * pitch, c.data(), RowConverter.SHORT, to, cols);
        }
    }
}
