package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which words rows wait for, and what is refused; both without a GPU. */
class ProgressMatmulTest {

    private static final long ADDRESS = 1 << 20;

    private static DeviceMatrix matrix(long rows, long cols, DType dtype) {
        return new DeviceMatrix(ADDRESS, dtype, rows, cols, cols);
    }

    /** Some number of splits that divides the elements. */
    private static int splits(Random random, long elements) {
        List<Integer> divisors = new ArrayList<>();
        for (int d = 1; d <= 40; d++) {
            if (elements % d == 0) {
                divisors.add(d);
            }
        }
        return divisors.get(random.nextInt(divisors.size()));
    }

    @Test
    void everyRowWaitsForEverySplitThatItHasAPartIn() {
        for (long seed = 1; seed <= 2000; seed++) {
            Random random = new Random(seed);
            int ranks = 1 + random.nextInt(5);
            int rank = random.nextInt(ranks);
            long rows = random.nextInt(60);
            long k = 1 + random.nextInt(30);
            int splits = splits(random, rows * k);
            int tileRows = 1 + random.nextInt(20);
            List<RowRange> ranges = ProgressMatmul.ranges(rows, k, ranks, splits, rank, tileRows);
            int[] times = new int[(int) (rows * ranks)];
            for (RowRange range : ranges) {
                assertEquals(range.sourceRow(), range.row());
                for (long row = range.row(); row < range.row() + range.rows(); row++) {
                    times[(int) row]++;
                    assertEquals(
                            expectedWords(row, rows, k, splits),
                            words(range, row),
                            "row " + row + ", seed " + seed);
                }
            }
            for (int row = 0; row < times.length; row++) {
                assertEquals(1, times[row], "row " + row + ", seed " + seed);
            }
            assertOrder(ranges, rows, ranks, rank, tileRows, "seed " + seed);
        }
    }

    /** Element by element: the share of its shard that each element of the row lies in. */
    private static Set<Integer> expectedWords(long row, long rows, long k, int splits) {
        long perSplit = rows * k / splits;
        Set<Integer> words = new TreeSet<>();
        for (long element = row % rows * k; element < (row % rows + 1) * k; element++) {
            words.add((int) (row / rows * splits + element / perSplit));
        }
        return words;
    }

    private static Set<Integer> words(RowRange range, long row) {
        return range.pieces().stream()
                .filter(piece -> piece.touches(row, 1))
                .map(Piece::flag)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** As they are pulled, in whole tiles but for the ends of shards. */
    private static void assertOrder(
            List<RowRange> ranges, long rows, int ranks, int rank, int tileRows, String what) {
        long before = -1;
        for (RowRange range : ranges) {
            long step = (range.row() / rows - rank - 1 + 2L * ranks) % ranks;
            long at = step * rows + range.row() % rows;
            assertTrue(at > before, what);
            before = at;
            assertEquals(0, range.row() % rows % tileRows, what);
            assertFalse(range.narrow(), what);
        }
    }

    @Test
    void splitsOfTheFirstShardAreMultipliedOneByOne() {
        List<RowRange> ranges = ProgressMatmul.ranges(512, 64, 2, 2, 0, 128);
        assertEquals(List.of(512L, 768L, 0L), ranges.stream().map(RowRange::row).toList());
        assertEquals(2, ranges.getLast().pieces().size(), "each row waits for its own split");
        assertEquals(
                List.of(2, 3, 0), ranges.stream().map(s -> s.pieces().getFirst().flag()).toList());
    }

    @ParameterizedTest
    @CsvSource({
        "FP32, FP32, BF16, 64, 32",
        "FP16, BF16, FP16, 64, 32",
        "FP16, FP16, BF16, 64, 32",
        "FP16, FP16, FP16, 56, 32",
        "FP16, FP16, FP16, 64, 40",
    })
    void typesAndShapesThatDoNotFitAreRefused(
            DType aType, DType bType, DType cType, long bRows, long cCols) {
        IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                ProgressMatmul.check(
                                        matrix(16, 64, aType),
                                        matrix(bRows, 32, bType),
                                        false,
                                        matrix(16, cCols, cType)));
        String says = "A [16, 64] " + aType.label() + ", B [" + bRows + ", 32] " + bType.label();
        assertTrue(refusal.getMessage().startsWith(says), refusal.getMessage());
    }

    @Test
    void bothLayoutsOfBAndAllTypesFit() {
        DeviceMatrix a = matrix(16, 64, DType.BF16);
        ProgressMatmul.check(a, matrix(64, 32, DType.BF16), false, matrix(16, 32, DType.BF16));
        ProgressMatmul.check(a, matrix(32, 64, DType.BF16), true, matrix(16, 32, DType.FP32));
        ProgressMatmul.check(a, matrix(64, 3, DType.FP16), false, matrix(16, 3, DType.FP32));
        DeviceMatrix wide = matrix(16, 5, DType.FP32);
        ProgressMatmul.check(wide, matrix(5, 3, DType.FP32), false, matrix(16, 3, DType.FP32));
    }

    /** Tensor cores read one 16-bit type, in rows that start at multiples of 16 bytes. */
    @Test
    void whatTensorCoresCannotReadIsMultipliedWithoutThem() {
        DeviceMatrix a = matrix(16, 64, DType.BF16);
        DeviceMatrix b = matrix(64, 32, DType.BF16);
        assertTrue(KernelFamily.suitTensorCores(a, b, DType.BF16));
        assertTrue(KernelFamily.suitTensorCores(a, b, DType.FP32));
        assertFalse(KernelFamily.suitTensorCores(a, matrix(64, 32, DType.FP16), DType.FP32));
        assertFalse(KernelFamily.suitTensorCores(matrix(16, 63, DType.BF16), b, DType.BF16));
        assertFalse(KernelFamily.suitTensorCores(a, matrix(64, 30, DType.BF16), DType.BF16));
        DeviceMatrix shifted = new DeviceMatrix(ADDRESS + 8, DType.BF16, 64, 32, 32);
        assertFalse(KernelFamily.suitTensorCores(a, shifted, DType.BF16));
        DeviceMatrix wide = matrix(16, 64, DType.FP32);
        assertFalse(KernelFamily.suitTensorCores(wide, matrix(64, 32, DType.FP32), DType.FP32));
    }

    @Test
    void aTilingIsOneOfTheKernelsOrRefusedWithThem() {
        Tiling best = new Tiling(128, 256, 64, 8, 4);
        Tiling ofTheExample = new Tiling(128, 256, 64, 8, 3);
        assertEquals(best, KernelFamily.HOPPER.tiling(null));
        assertEquals(ofTheExample, KernelFamily.HOPPER.tiling(ofTheExample));
        assertEquals(new Tiling(128, 256, 64, 8, 3), KernelFamily.MMA.tiling(null));
        assertEquals(
                "tiles of 128 x 256 x 64 by 8 warps in 3 stages: expected one of those of"
                        + " simt_gemm.cu, [128 x 128 x 16 by 8 warps in 2 stages]",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> KernelFamily.SIMT.tiling(ofTheExample))
                        .getMessage());
    }

    @Test
    void elementsThatAreNotAlignedAreRefused() {
        DeviceMatrix a = matrix(16, 64, DType.FP16);
        DeviceMatrix shifted = new DeviceMatrix(ADDRESS + 1, DType.FP16, 64, 32, 32);
        assertEquals(
                "B [64, 32] fp16 at 1048577: expected a multiple of 2 bytes",
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        ProgressMatmul.check(
                                                a, shifted, false, matrix(16, 32, DType.FP16)))
                        .getMessage());
    }

    @Test
    void partsArePulledFromTheSuccessorOnAndTheOwnOneLast() {
        List<Integer> sources = new ArrayList<>();
        for (int step = 0; step < 4; step++) {
            sources.add(HelionHostGather.source(2, step, 4));
        }
        assertEquals(List.of(3, 0, 1, 2), sources);
    }

    @Test
    void progressIsAlignedWords() {
        assertThrows(IllegalArgumentException.class, () -> new DeviceProgress(0, 1));
        assertThrows(IllegalArgumentException.class, () -> new DeviceProgress(ADDRESS + 2, 1));
        DeviceProgress progress = new DeviceProgress(ADDRESS + 4, 3);
        try (GpuStream stream = GpuStream.of(0)) {
            assertEquals(
                    "progress of chunk 3: expected 0 to 2",
                    assertThrows(IllegalArgumentException.class, () -> progress.publish(3, stream))
                            .getMessage());
        }
        assertEquals(
                "progress of 0 words at 1048576: expected at least one word, at an address that is"
                        + " a multiple of 4",
                assertThrows(IllegalArgumentException.class, () -> new DeviceProgress(ADDRESS, 0))
                        .getMessage());
    }
}
