package dev.weft.cli.verify;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class SeedRuleTest {

    /** 3000 x 10 elements of 2, the first {@code wrong} of them replaced. */
    private static SeedRule judge(DType type, int wrong, float value) {
        return judge(type, wrong, value, 1);
    }

    private static SeedRule judge(DType type, int wrong, float value, long k) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix golden = Matrix.allocate(arena, DType.FP32, 3000, 10);
            Matrix output = Matrix.allocate(arena, type, 3000, 10);
            for (int i = 0; i < 30000; i++) {
                golden.set(i / 10, i % 10, 2);
                output.set(i / 10, i % 10, i < wrong ? value : 2);
            }
            return SeedRule.judge(golden, output, k);
        }
    }

    @Test
    void onePerMilleMayBeBad() {
        assertTrue(judge(DType.FP32, 30, 2.5f).passed());
        assertFalse(judge(DType.FP32, 31, 2.5f).passed());
        assertEquals(new SeedRule(31, 0, 30000), judge(DType.FP32, 31, 2.5f));
    }

    @Test
    void anElementIsBadOnlyIfItIsOffBothWays() {
        assertTrue(judge(DType.FP32, 30000, 2.0019f).passed(), "relatively close");
        assertFalse(judge(DType.FP32, 30000, 2.0021f).passed());
        assertFalse(judge(DType.FP32, 30000, Float.NaN).passed(), "NaN is never close");
    }

    @Test
    void infinityAndNanAreCloseToThemselvesAlone() {
        float inf = Float.POSITIVE_INFINITY;
        for (float golden : new float[] {inf, -inf, Float.NaN}) {
            for (float output : new float[] {inf, -inf, Float.NaN, 2}) {
                try (Arena arena = Arena.ofConfined()) {
                    Matrix expected = Matrix.copyOf(arena, new float[][] {{golden}});
                    Matrix actual = Matrix.copyOf(arena, new float[][] {{output}});
                    assertEquals(
                            Float.compare(golden, output) == 0,
                            SeedRule.judge(expected, actual, 1).passed(),
                            golden + " and " + output);
                }
            }
        }
    }

    @Test
    void zerosAreCountedByThemselves() {
        assertEquals(1001, judge(DType.FP32, 1001, 0).zeros());
        assertFalse(judge(DType.FP32, 1001, 0).passed());
    }

    @Test
    void goldenIsRoundedToTheOutputsType() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix golden = Matrix.allocate(arena, DType.FP32, 1, 1);
            Matrix output = Matrix.allocate(arena, DType.BF16, 1, 1);
            golden.set(0, 0, 1.0035f);
            output.set(0, 0, 1.0035f);
            assertEquals(0, SeedRule.judge(golden, output, 1).bad(), "one rounding is no error");
        }
    }

    @Test
    void oneUnitOfTheOutputsTypeIsNoError() {
        assertTrue(judge(DType.BF16, 30000, 2 + 0x1p-6f).passed(), "the value above 2");
        assertFalse(judge(DType.BF16, 30000, 2 + 0x1p-5f).passed(), "two above");
        assertFalse(judge(DType.FP16, 30000, 2 + 0x1p-8f).passed(), "two above");
    }

    @Test
    void theAbsoluteLimitGrowsWithALongK() {
        float off = 2.0035f;
        assertFalse(judge(DType.FP32, 30000, off, 4096).passed());
        assertFalse(judge(DType.FP32, 30000, off, 8192).passed());
        assertTrue(judge(DType.FP32, 30000, off, 16384).passed());
    }
}
