package dev.weft.op;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Two 64-bit hashes of a matrix's elements, with unrelated multipliers: 128 bits that tell ranks
 * whether they hold the same matrix. They detect differences, not attacks: ranks of a group trust
 * each other. Pure and thread-safe.
 */
final class MatrixDigest {

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    /** Odd, with bits in all places. */
    private static final long FIRST = 0x9E3779B97F4A7C15L;

    private static final long SECOND = 0xC2B2AE3D27D4EB4FL;

    private MatrixDigest() {}

    static long[] of(Matrix matrix) {
        long first = FIRST;
        long second = SECOND;
        for (long row = 0; row < matrix.rows(); row++) {
            long at = matrix.offset(row, 0);
            long end = at + matrix.rowBytes();
            for (; at + Long.BYTES <= end; at += Long.BYTES) {
                long word = matrix.data().get(LONG, at);
                first = mix(first ^ word, FIRST);
                second = mix(second ^ word, SECOND);
            }
            long tail = tail(matrix.data(), at, end);
            first = mix(first ^ tail, FIRST);
            second = mix(second ^ tail, SECOND);
        }
        return new long[] {first, second};
    }

    private static long tail(MemorySegment data, long at, long end) {
        long word = end - at;
        for (long i = at; i < end; i++) {
            word = word << Byte.SIZE | data.get(ValueLayout.JAVA_BYTE, i) & 0xFF;
        }
        return word;
    }

    /** A bijection of the state: no later word can cancel a difference. */
    private static long mix(long state, long multiplier) {
        long product = state * multiplier;
        return product ^ product >>> 29;
    }
}
