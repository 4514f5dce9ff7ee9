package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.Seed19Data;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class AscendRowTest {

    /** Times and rates were typed in from one table: each checks the other. */
    @Test
    void theTimesGiveThePublishedRates() {
        for (AscendRow row : AscendRow.ROWS) {
            double rate = row.flops() / row.publishedMs() / 1e9;
            // Times have three places, rates come from more: half a unit of the last one.
            double half = rate * 0.0005 / row.publishedMs() + 0.005;
            assertEquals(row.publishedTflops(), rate, half, row.describe());
        }
    }

    /** The example's data are the integers 1 to 4: golden must have their sums to the bit. */
    @Test
    void goldenIsExactAtEveryPublishedShape() {
        for (AscendRow row : AscendRow.ROWS) {
            int k = (int) row.k();
            int n = (int) row.n();
            try (Arena arena = Arena.ofShared()) {
                Matrix a = Matrix.allocate(arena, DType.FP16, 2, k);
                Matrix b = Matrix.allocate(arena, DType.FP16, k, n);
                // Of all rows the first and the last: a misplaced index shows there.
                new Seed19Data(0).fill(a.rows(0, 1), 0, 0, k);
                new Seed19Data(0).fill(a.rows(1, 1), row.m() - 1, 0, k);
                new Seed19Data(1).fill(b);
                Matrix golden = new Float64Oracle(a, b, false).golden(0, 2, arena, rows -> {});
                for (int i = 0; i < 2; i++) {
                    long firstOfA = i * (row.m() - 1) * k;
                    long[] sums = new long[n];
                    for (int inner = 0; inner < k; inner++) {
                        long factor = (long) new Seed19Data(0).value(firstOfA + inner);
                        for (int col = 0; col < n; col++) {
                            sums[col] += factor * (long) b.get(inner, col);
                        }
                    }
                    for (int col = 0; col < n; col++) {
                        assertEquals(sums[col], golden.get(i, col), 0, row.describe());
                    }
                }
            }
        }
    }
}
