package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.compat.Fgcc.Path;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.BitSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The source's numbers: channels, path, slices. */
class FgccLayoutTest {

    private static final FgccConfig TWO = FgccConfig.DEFAULT.withLnc(2);

    @ParameterizedTest
    @CsvSource({
        "2, 2, 1",
        "2, 4, 2",
        "2, 6, 1",
        "2, 8, 2",
        "2, 16, 2",
        "2, 32, 2",
        "2, 48, 1",
        "2, 64, 4",
        "2, 128, 4",
        "2, 256, 1",
        "1, 4, 1",
        "1, 16, 1",
        "1, 64, 1",
        "1, 128, 1"
    })
    void channelsFollowProgramsAndRanks(int programs, int ranks, int channels) {
        assertEquals(channels, FgccLayout.channels(programs, ranks));
    }

    /** m, K, N of a rank, L on 4 ranks; each pair lies on both sides of one edge of the rule. */
    @ParameterizedTest
    @CsvSource({
        // B takes 2 x 8 MiB of 24, which leaves room for two slices of 4 MiB.
        "1536, 4096, 1024, 2, SBUF",
        "2048, 4096, 1024, 2, SBUF",
        "2052, 4096, 1024, 2, HBM",
        "512, 4096, 1024, 1, SBUF",
        "513, 4096, 1024, 1, HBM",
        // B of 2 x 4 MiB leaves 16.
        "4096, 4096, 512, 2, SBUF",
        "4100, 4096, 512, 2, HBM",
        // B is too large to stay: 8 tiles of K by 4 of N, 2 x 4 MiB.
        "4096, 4096, 8192, 2, SBUF",
        "4100, 4096, 8192, 2, HBM",
        // 8 tiles of K by one of N leave 22 MiB; 257 rows of a slice count as 384.
        "1024, 16384, 8192, 2, SBUF",
        "1028, 16384, 8192, 2, HBM",
        "0, 16, 16, 1, SBUF",
        "4611686018427387904, 4611686018427387904, 4611686018427387904, 2, HBM"
    })
    void thePathFollowsTheCapacity(long m, long k, long n, int lnc, Path expected) {
        FgccConfig config = FgccConfig.DEFAULT.withLnc(lnc);
        assertEquals(expected, path(config, 4, m, k, n, DType.BF16, false));
        assertEquals(Path.HBM, path(config, 4, m, k, n, DType.BF16, true));
    }

    private static Path path(
            FgccConfig config, int ranks, long m, long k, long n, DType type, boolean forceHbm) {
        int slices = config.lnc() * FgccLayout.channels(config.lnc(), ranks);
        return Path.choose(config, slices, m, k, n, type, type, forceHbm);
    }

    @Test
    void aLargerElementOrASmallerChipTurnsToMemory() {
        assertEquals(Path.SBUF, path(TWO, 4, 4096, 4096, 512, DType.BF16, false));
        assertEquals(Path.HBM, path(TWO, 4, 4096, 4096, 512, DType.FP32, false));
        FgccConfig small = TWO.withOnChipBytes(12 << 20);
        assertEquals(Path.HBM, path(small, 4, 4096, 4096, 512, DType.BF16, false));
    }

    /** By the source's tests; N is of all ranks together. */
    @ParameterizedTest
    @CsvSource({
        "1024, 4096, 4096, 4, 2", "2048, 4096, 8192, 16, 2", "512, 8192, 32768, 64, 2",
        "512, 1024, 1024, 64, 1", "256, 1024, 1024, 4, 1", "1024, 2048, 2048, 4, 2"
    })
    void theSourcesShapesFitTheChip(long m, long k, long n, int ranks, int lnc) {
        FgccConfig config = FgccConfig.DEFAULT.withLnc(lnc);
        assertEquals(Path.SBUF, path(config, ranks, m, k, n / ranks, DType.BF16, false));
    }

    @Test
    void aConfigThatNoMachineHasIsRefused() {
        String message =
                assertThrows(IllegalArgumentException.class, () -> new FgccConfig(3, 1))
                        .getMessage();
        assertEquals("lnc 3: expected 1 or 2", message);
        assertThrows(IllegalArgumentException.class, () -> new FgccConfig(1, -1));
    }

    @Test
    void rowsThatCannotBeDealtOutAreRefusedWithTheNumbers() {
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> FgccLayout.of(Path.SBUF, 64, 2, 20, 1))
                        .getMessage();
        assertEquals(
                "M = 1280 (m = 20 on each of R = 64 ranks) is not divisible by R*L*C = 64*2*4 ="
                        + " 512: expected m to be a multiple of 8",
                message);
    }

    @Test
    void slicesAreNumberedAsThePathSays() {
        FgccLayout onChip = FgccLayout.of(Path.SBUF, 64, 2, 24, 5);
        FgccLayout inMemory = onChip.on(Path.HBM);
        assertArrayEquals(new long[] {64, 2, 4, 3, 5}, onChip.shape());
        assertArrayEquals(new long[] {64, 4, 2, 3, 5}, inMemory.shape());
        assertEquals(1 * 4 + 2, onChip.slice(1, 2));
        assertEquals(2 * 2 + 1, inMemory.slice(1, 2));
        assertEquals(24 * 7 + 6 * 3, onChip.firstRow(7, 1, 2));
        assertEquals(24 * 7 + 5 * 3, inMemory.firstRow(7, 1, 2));
        assertThrows(IndexOutOfBoundsException.class, () -> onChip.slice(2, 0));
        assertThrows(IndexOutOfBoundsException.class, () -> onChip.slice(0, 4));
        assertThrows(IndexOutOfBoundsException.class, () -> onChip.firstRow(64, 0, 0));
    }

    /** A ring of many ranks on one GPU is slower than no ring. */
    @Test
    void manyRanksOfOneGpuReadInPlace() {
        long[] one = new long[64];
        assertTrue(Fgcc.isInPlace(true, one));
        assertFalse(Fgcc.isInPlace(false, one), "on several hosts");
        assertFalse(Fgcc.isInPlace(true, new long[4]), "few ranks");
        one[63] = 1;
        assertFalse(Fgcc.isInPlace(true, one), "two GPUs");
    }

    /** Slices cover every row once, and five indices meet the same element as its slice does. */
    @ParameterizedTest
    @EnumSource(Path.class)
    void slicesAndIndicesMeetTheSameElements(Path path) {
        FgccLayout layout = FgccLayout.of(path, 4, 2, 12, 2);
        try (Arena arena = Arena.ofConfined()) {
            Matrix product = Matrix.allocate(arena, DType.FP32, 48, 2);
            for (int row = 0; row < 48; row++) {
                product.set(row, 1, row);
            }
            FgccResult<Matrix> result =
                    new FgccResult<>(layout, product, Place.HOST, null, () -> {});
            BitSet seen = new BitSet();
            for (int r = 0; r < 4; r++) {
                for (int l = 0; l < 2; l++) {
                    for (int c = 0; c < 2; c++) {
                        Matrix slice = result.slice(r, l, c);
                        assertEquals("[3, 2] fp32", slice.describe());
                        for (int row = 0; row < 3; row++) {
                            boolean onChip = path == Path.SBUF;
                            Matrix at = result.row(r, onChip ? l : c, onChip ? c : l, row);
                            float element = at.get(0, 1);
                            assertEquals(slice.get(row, 1), element);
                            seen.set((int) element);
                        }
                    }
                }
            }
            assertEquals(48, seen.cardinality());
            assertEquals(47, result.row(3, 1, 1, 2).get(0, 1), "row-major in shape's order");
            assertThrows(IndexOutOfBoundsException.class, () -> result.row(0, 0, 0, 3));
        }
    }
}
