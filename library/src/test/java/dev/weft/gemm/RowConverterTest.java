package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RowConverterTest {

    private static final int ALL_HALVES = 1 << 16;

    @Test
    void widensEveryHalfAsItsTypeDoes() {
        for (DType dtype : new DType[] {DType.FP16, DType.BF16}) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix row = Matrix.allocate(arena, dtype, 1, ALL_HALVES);
                for (int bits = 0; bits < ALL_HALVES; bits++) {
                    row.data().setAtIndex(ValueLayout.JAVA_SHORT, bits, (short) bits);
                }
                MemorySegment target = MemorySegment.ofArray(new float[ALL_HALVES]);
                new RowConverter().widen(row, 0, 5, ALL_HALVES - 5, target, 20);
                for (int i = 5; i < ALL_HALVES; i++) {
                    float widened = target.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                    assertEquals(row.get(0, i), widened, dtype + " bits " + i);
                }
            }
        }
    }

    @Test
    void widensEveryByteAsItsTypeDoes() {
        for (DType dtype : new DType[] {DType.E4M3, DType.E5M2}) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix row = Matrix.allocate(arena, dtype, 1, 256);
                for (int bits = 0; bits < 256; bits++) {
                    row.data().set(ValueLayout.JAVA_BYTE, bits, (byte) bits);
                }
                MemorySegment target = MemorySegment.ofArray(new float[256]);
                new RowConverter().widen(row, 0, 3, 253, target, 12);
                for (int i = 3; i < 256; i++) {
                    float widened = target.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                    assertEquals(row.get(0, i), widened, dtype + " bits " + i);
                }
            }
        }
    }

    @Test
    void narrowsEveryKindOfFloatAsItsTypeDoes() {
        float[] values = floats();
        MemorySegment source = MemorySegment.ofArray(values);
        for (DType dtype : DType.values()) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix row = Matrix.allocate(arena, dtype, 1, values.length + 7);
                new RowConverter().narrow(source, 0, values.length, row, 0, 7);
                for (int i = 0; i < values.length; i++) {
                    float expected = dtype.round(values[i]);
                    assertEquals(
                            Float.floatToIntBits(expected),
                            Float.floatToIntBits(row.get(0, i + 7)),
                            dtype + " of " + values[i]);
                }
            }
        }
    }

    /** All values of both 16-bit types, the midpoints between them and their neighbours; noise. */
    private static float[] floats() {
        float[] values = new float[8 * ALL_HALVES];
        Random random = new Random(5);
        for (int bits = 0; bits < ALL_HALVES; bits++) {
            float half = Float.float16ToFloat((short) bits);
            float next = Float.float16ToFloat((short) (bits + 1));
            float middle = (half + next) / 2;
            int at = 8 * bits;
            values[at] = half;
            values[at + 1] = middle;
            values[at + 2] = Math.nextUp(middle);
            values[at + 3] = Math.nextDown(middle);
            values[at + 4] = Float.intBitsToFloat(bits << 16 | 0x8000);
            values[at + 5] = Float.intBitsToFloat(bits << 16 | 0x8001);
            values[at + 6] = Float.intBitsToFloat(bits << 16 | 0x7FFF);
            values[at + 7] = Float.intBitsToFloat(random.nextInt());
        }
        return values;
    }
}
