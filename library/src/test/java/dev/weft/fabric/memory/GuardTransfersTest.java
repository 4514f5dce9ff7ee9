package dev.weft.fabric.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.GuardedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Chunks are copied between parts that end, or begin, where nobody may touch anything. */
class GuardTransfersTest {

    private static final long[] ROW_BYTES = {1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 129, 4097};
    private static final long[] ROWS = {1, 2, 3, 64, 65};
    private static final long[] GAPS = {0, 1, 13};

    @ParameterizedTest
    @EnumSource
    void aChunkAtTheEdgeIsMovedWholeAndNothingElseIsTouched(GuardedMemory.Flush flush) {
        assumeTrue(
                GuardedMemory.unavailable().isEmpty(),
                () -> GuardedMemory.unavailable().orElseThrow());
        try (Arena arena = Arena.ofShared()) {
            Transport rank = ThreadFabric.world(2, Duration.ofSeconds(10), arena)[0];
            for (long rows : ROWS) {
                for (long rowBytes : ROW_BYTES) {
                    for (long fromGap : GAPS) {
                        for (long toGap : GAPS) {
                            move(rank, flush, rows, rowBytes, fromGap, toGap);
                        }
                    }
                }
            }
        }
    }

    private static void move(
            Transport rank,
            GuardedMemory.Flush flush,
            long rows,
            long rowBytes,
            long fromGap,
            long toGap) {
        long fromBytes = partBytes(rows, rowBytes, fromGap);
        long toBytes = partBytes(rows, rowBytes, toGap);
        try (GuardedMemory memory = new GuardedMemory(flush);
                ChunkMover mover = rank.mover(index -> {})) {
            MemorySegment[] whole = {
                memory.allocate(MemoryRegion.HEADER_BYTES + fromBytes),
                memory.allocate(MemoryRegion.HEADER_BYTES + toBytes)
            };
            Region region = new MemoryRegion(whole, () -> {});
            long fromAt = fromBytes - chunkBytes(rows, rowBytes, fromGap);
            long toAt = toBytes - chunkBytes(rows, rowBytes, toGap);
            MemorySegment from = region.part(0);
            for (long at = fromAt; at < fromBytes; at++) {
                from.set(ValueLayout.JAVA_BYTE, at, (byte) (at + 1));
            }
            Move move =
                    new Move(
                            region,
                            0,
                            fromAt,
                            rowBytes + fromGap,
                            1,
                            toAt,
                            rowBytes + toGap,
                            rows,
                            rowBytes,
                            0,
                            4);
            mover.move(0, move, 5, 6);
            String what = move + " with gaps of " + fromGap + " and " + toGap;
            assertEquals(5, region.part(1).get(ValueLayout.JAVA_INT, 0), what);
            assertEquals(6, region.part(1).get(ValueLayout.JAVA_INT, 4), what);
            assertSame(move, from, region.part(1), what);
        }
    }

    private static void assertSame(Move move, MemorySegment from, MemorySegment to, String what) {
        for (long row = 0; row < move.rows(); row++) {
            long fromAt = move.fromAt() + row * move.fromPitch();
            long toAt = move.toAt() + row * move.toPitch();
            long bytes = move.rowBytes();
            assertEquals(
                    -1,
                    MemorySegment.mismatch(from, fromAt, fromAt + bytes, to, toAt, toAt + bytes),
                    what);
            boolean hasGap = row + 1 < move.rows() && move.toPitch() > bytes;
            assertEquals(0, hasGap ? to.get(ValueLayout.JAVA_BYTE, toAt + bytes) : 0, what);
        }
    }

    private static long chunkBytes(long rows, long rowBytes, long gap) {
        return (rows - 1) * (rowBytes + gap) + rowBytes;
    }

    /** Two words, and so much before the chunk that they are aligned. */
    private static long partBytes(long rows, long rowBytes, long gap) {
        return Math.ceilDiv(2 * Integer.BYTES + chunkBytes(rows, rowBytes, gap), 8) * 8;
    }
}
