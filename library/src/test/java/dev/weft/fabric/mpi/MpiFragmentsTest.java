package dev.weft.fabric.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

class MpiFragmentsTest {

    private static final long DEFAULT = 16L << 20;

    /** Every byte of the rectangle is in one message, at both ends in the same one. */
    @Test
    void messagesTileAnyRectangle() {
        Random random = new Random(3);
        for (int i = 0; i < 2000; i++) {
            int rows = random.nextInt(30);
            int rowBytes = random.nextInt(50);
            int fromPitch = rowBytes + random.nextInt(2) * random.nextInt(9);
            int toPitch = rowBytes + random.nextInt(2) * random.nextInt(9);
            int most = 1 + random.nextInt(200);
            MpiFragments fragments = MpiFragments.of(rows, rowBytes, fromPitch, toPitch, most);
            String what = rows + " x " + rowBytes + " in " + most + ": " + fragments;
            assertTiled(fragments, rows, rowBytes, fromPitch, what);
            assertTiled(fragments, rows, rowBytes, toPitch, what);
            for (int fragment = 0; fragment < fragments.count(); fragment++) {
                assertTrue(bytes(fragments, fragment) <= Math.max(most, rowBytes), what);
            }
        }
    }

    private static long bytes(MpiFragments fragments, int fragment) {
        return fragments.rows(fragment) * fragments.rowBytes();
    }

    private static void assertTiled(
            MpiFragments fragments, int rows, int rowBytes, int pitch, String what) {
        int[] sent = new int[rows * pitch + 1];
        for (int fragment = 0; fragment < fragments.count(); fragment++) {
            assertTrue(fragments.rows(fragment) > 0, what);
            long at = fragments.at(fragment, pitch);
            for (int row = 0; row < fragments.rows(fragment); row++) {
                long step = fragments.contiguous() ? 1 : pitch;
                for (int b = 0; b < fragments.rowBytes(); b++) {
                    sent[(int) (at + row * step + b)]++;
                }
            }
        }
        for (int at = 0; at < sent.length; at++) {
            boolean inside = pitch > 0 && at / pitch < rows && at % pitch < rowBytes;
            assertEquals(inside ? 1 : 0, sent[at], what + ", byte " + at);
        }
    }

    @Test
    void aRectangleWithoutGapsIsCutAnywhere() {
        MpiFragments fragments = MpiFragments.of(3, 7, 7, 7, 10);
        assertTrue(fragments.contiguous());
        assertEquals(3, fragments.count());
        assertEquals(10, fragments.rows(0));
        assertEquals(1, fragments.rows(2));
        assertFalse(MpiFragments.of(3, 7, 8, 7, 10).contiguous());
        assertTrue(MpiFragments.of(1, 7, 8, 9, 10).contiguous(), "one row has no gaps");
    }

    @Test
    void nothingIsNoMessage() {
        assertEquals(0, MpiFragments.of(0, 50, 60, 60, DEFAULT).count());
        assertEquals(0, MpiFragments.of(0, 50, 50, 50, DEFAULT).count());
    }

    @Test
    void moreThanAnIntCountsIsSplit() {
        long bytes = 5_000_000_123L;
        for (long most : new long[] {DEFAULT, Integer.MAX_VALUE, Long.MAX_VALUE}) {
            MpiFragments plain = MpiFragments.of(1, bytes, bytes, bytes, most);
            assertSums(bytes, plain, 1);
            MpiFragments gaps = MpiFragments.of(50_000, 100_000, 100_001, 100_000, most);
            assertSums(5_000_000_000L, gaps, 100_001);
        }
    }

    private static void assertSums(long bytes, MpiFragments fragments, long pitch) {
        long sum = 0;
        long row = 0;
        for (int fragment = 0; fragment < fragments.count(); fragment++) {
            assertEquals(row * pitch, fragments.at(fragment, pitch), "fragment " + fragment);
            assertTrue(bytes(fragments, fragment) <= Integer.MAX_VALUE, "fragment " + fragment);
            row += fragments.rows(fragment);
            sum += bytes(fragments, fragment);
        }
        assertEquals(bytes, sum);
    }

    @Test
    void aRowWithGapsThatNoMessageCanHoldIsRefused() {
        long row = 1L << 31;
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> MpiFragments.of(2, row, row + 1, row, DEFAULT))
                        .getMessage();
        assertEquals("rows of 2147483648 bytes with gaps: expected less than 2 GiB", message);
        assertEquals(
                2, MpiFragments.of(2, row - 1, row, row, DEFAULT).count(), "a message per row");
    }
}
