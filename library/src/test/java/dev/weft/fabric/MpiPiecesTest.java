package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

class MpiPiecesTest {

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
            MpiPieces pieces = MpiPieces.of(rows, rowBytes, fromPitch, toPitch, most);
            String what = rows + " x " + rowBytes + " in " + most + ": " + pieces;
            assertTiled(pieces, rows, rowBytes, fromPitch, what);
            assertTiled(pieces, rows, rowBytes, toPitch, what);
            for (int piece = 0; piece < pieces.count(); piece++) {
                assertTrue(bytes(pieces, piece) <= Math.max(most, rowBytes), what);
            }
        }
    }

    private static long bytes(MpiPieces pieces, int piece) {
        return pieces.rows(piece) * pieces.rowBytes();
    }

    private static void assertTiled(
            MpiPieces pieces, int rows, int rowBytes, int pitch, String what) {
        int[] sent = new int[rows * pitch + 1];
        for (int piece = 0; piece < pieces.count(); piece++) {
            assertTrue(pieces.rows(piece) > 0, what);
            long at = pieces.at(piece, pitch);
            for (int row = 0; row < pieces.rows(piece); row++) {
                long step = pieces.contiguous() ? 1 : pitch;
                for (int b = 0; b < pieces.rowBytes(); b++) {
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
        MpiPieces pieces = MpiPieces.of(3, 7, 7, 7, 10);
        assertTrue(pieces.contiguous());
        assertEquals(3, pieces.count());
        assertEquals(10, pieces.rows(0));
        assertEquals(1, pieces.rows(2));
        assertFalse(MpiPieces.of(3, 7, 8, 7, 10).contiguous());
        assertTrue(MpiPieces.of(1, 7, 8, 9, 10).contiguous(), "one row has no gaps");
    }

    @Test
    void nothingIsNoMessage() {
        assertEquals(0, MpiPieces.of(0, 50, 60, 60, DEFAULT).count());
        assertEquals(0, MpiPieces.of(0, 50, 50, 50, DEFAULT).count());
    }

    @Test
    void moreThanAnIntCountsIsSplit() {
        long bytes = 5_000_000_123L;
        for (long most : new long[] {DEFAULT, Integer.MAX_VALUE, Long.MAX_VALUE}) {
            MpiPieces plain = MpiPieces.of(1, bytes, bytes, bytes, most);
            assertSums(bytes, plain, 1);
            MpiPieces gaps = MpiPieces.of(50_000, 100_000, 100_001, 100_000, most);
            assertSums(5_000_000_000L, gaps, 100_001);
        }
    }

    private static void assertSums(long bytes, MpiPieces pieces, long pitch) {
        long sum = 0;
        long row = 0;
        for (int piece = 0; piece < pieces.count(); piece++) {
            assertEquals(row * pitch, pieces.at(piece, pitch), "piece " + piece);
            assertTrue(bytes(pieces, piece) <= Integer.MAX_VALUE, "piece " + piece);
            row += pieces.rows(piece);
            sum += bytes(pieces, piece);
        }
        assertEquals(bytes, sum);
    }

    @Test
    void aRowWithGapsThatNoMessageCanHoldIsRefused() {
        long row = 1L << 31;
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> MpiPieces.of(2, row, row + 1, row, DEFAULT))
                        .getMessage();
        assertEquals("rows of 2147483648 bytes with gaps: expected less than 2 GiB", message);
        assertEquals(2, MpiPieces.of(2, row - 1, row, row, DEFAULT).count(), "a message per row");
    }
}
