package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;

/** Tiles of bf16 in plain Java, which sum as the manual says that AMX does. */
public final class Bf16Tiles implements Tiles {

    private static final int SIZE = 32;
    private static final int ROW_BYTES = BF16_STEP * Short.BYTES;
    private static final int STEP_BYTES = SIZE * ROW_BYTES;

    @Override
    public String name() {
        return "twin";
    }

    @Override
    public DType type() {
        return DType.BF16;
    }

    @Override
    public int rows() {
        return SIZE;
    }

    @Override
    public int cols() {
        return SIZE;
    }

    @Override
    public int colStep() {
        return SIZE;
    }

    @Override
    public void pack(
            DType type,
            MemorySegment a,
            long from,
            long pitch,
            int count,
            int depth,
            MemorySegment packed,
            long to,
            Arguments arguments) {
        int tiles = Math.ceilDiv(count, SIZE);
        packed.asSlice(to, tiles * tileBytes(depth)).fill((byte) 0);
        for (int row = 0; row < tiles * SIZE; row++) {
            long source = from + Math.min(row, count - 1) * pitch;
            long tile = to + row / SIZE * tileBytes(depth) + row % SIZE * ROW_BYTES;
            for (int k = 0; k < depth; k++) {
                long at = tile + k / BF16_STEP * STEP_BYTES + k % BF16_STEP * 2;
                short value = a.get(JAVA_SHORT_UNALIGNED, source + k * 2L);
                packed.set(JAVA_SHORT_UNALIGNED, at, value);
            }
        }
    }

    @Override
    public void sum(
            boolean resume,
            MemorySegment packed,
            long aFrom,
            int tileCount,
            int rowCount,
            int depth,
            DType panelType,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        for (int row = 0; row < tileCount * SIZE; row++) {
            long tile = aFrom + row / SIZE * tileBytes(depth) + row % SIZE * ROW_BYTES;
            for (int col = 0; col < Math.max(SIZE, colCount); col++) {
                long panel = bFrom + col / SIZE * panelBytes(panelType, depth);
                long at = sumsFrom + row * pitch + col * 4L;
                float sum = resume ? sums.get(JAVA_FLOAT_UNALIGNED, at) : 0f;
                for (int k = 0; k < depth; k += BF16_STEP) {
                    long a = tile + k / BF16_STEP * STEP_BYTES;
                    long b = panel + Tiles.inPanel(panelType, true, SIZE, k, col % SIZE);
                    sum = step(sum, packed, a, panels, b);
                }
                sums.set(JAVA_FLOAT_UNALIGNED, at, sum);
            }
        }
    }

    /**
     * What one instruction makes of a sum: even and odd k apart, then both together, then with the
     * sum.
     *
     * @param aAt where 32 elements begin
     * @param bAt where the first of 16 pairs is, the next 64 bytes on
     */
    static float step(float sum, MemorySegment a, long aAt, MemorySegment b, long bAt) {
        float even = 0;
        float odd = 0;
        for (int i = 0; i < BF16_STEP / 2; i++) {
            long left = aAt + i * 4L;
            long right = bAt + i * 4L * BF16_COLS;
            even = flushed(Math.fma(element(a, left), element(b, right), even));
            odd = flushed(Math.fma(element(a, left + 2), element(b, right + 2), odd));
        }
        return flushed(flushed(sum) + flushed(even + odd));
    }

    private static float element(MemorySegment memory, long at) {
        return flushed(DType.bf16ToFloat(memory.get(JAVA_SHORT_UNALIGNED, at)));
    }

    /** Denormals are zero. */
    static float flushed(float value) {
        return Math.abs(value) < Float.MIN_NORMAL ? Math.copySign(0f, value) : value;
    }
}
