package dev.weft.op.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Region;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Host memory of ranks on GPUs: nothing overlaps, and both ends of a move mean the same rows. */
class StagedMemoryTest {

    private static final Shards SHARDS = Shards.of(300, 0, 1000, 1);

    private static void with(Chunks chunks, long pitchBytes, Consumer<OperatorMemory> check) {
        Ranks.run(
                SHARDS.ranks(),
                fabric -> {
                    OperatorMemory memory =
                            OperatorMemory.staged(fabric, chunks, DType.FP16, pitchBytes);
                    check.accept(memory);
                    memory.region().close();
                });
    }

    /** The move of chunk {@code c} of a source from one rank to another. */
    private static void withMove(
            Chunks chunks,
            long pitchBytes,
            int from,
            int to,
            int source,
            int c,
            int half,
            BiConsumer<OperatorMemory, Move> check) {
        int tag = chunks.tag(source, c);
        Transfer transfer =
                new Transfer(from, to, source, c, tag, Transfer.Initiator.SENDER, source, 0);
        with(
                chunks,
                pitchBytes,
                memory ->
                        check.accept(
                                memory,
                                memory.move(transfer, chunks.chunk(source, c), 0, half, -1)));
    }

    @Test
    void wordsFlagsAndHalvesFollowEachOtherOnPages() {
        for (long chunkRows : new long[] {1, 7, 256}) {
            Chunks chunks = Chunks.byRows(SHARDS, 77, chunkRows, chunkRows);
            with(
                    chunks,
                    160,
                    memory -> {
                        assertTrue(OperatorMemory.STAGED_AT + 4 <= OperatorMemory.RELEASED_AT);
                        assertTrue(OperatorMemory.STAGED_AT + 4 <= Region.WORDS_BYTES);
                        int last = SHARDS.ranks() - 1;
                        assertTrue(memory.flagAt(last, chunks.count(last)) <= memory.shardAt(0, 0));
                        for (int r = 0; r < SHARDS.ranks(); r++) {
                            long shard = SHARDS.rows(r) * 160;
                            long all = SHARDS.totalRows() * 160;
                            assertEquals(0, memory.shardAt(r, 0) % 4096);
                            assertTrue(memory.shardAt(r, 0) + shard <= memory.shardAt(r, 1));
                            assertTrue(memory.shardAt(r, 1) + shard <= memory.landingAt(r, 0));
                            assertTrue(memory.landingAt(r, 0) + all <= memory.landingAt(r, 1));
                            assertTrue(memory.landingAt(r, 1) + all <= memory.bytes(r));
                            assertEquals(0, memory.bytes(r) % 4096);
                        }
                    });
        }
    }

    @Test
    void wholeRowsTravelWithTheirPadding() {
        Chunks chunks = Chunks.byRows(SHARDS, 77, 256, 256);
        withMove(
                chunks,
                160,
                2,
                0,
                2,
                1,
                1,
                (memory, move) -> {
                    assertEquals(memory.shardAt(2, 1) + 256 * 160, move.fromAt());
                    assertEquals(memory.landingAt(0, 1) + (300 + 256) * 160, move.toAt());
                    assertEquals(160, move.rowBytes());
                    assertEquals(256, move.rows());
                    assertEquals(memory.flagAt(2, 1), move.flagAt());
                });
    }

    @Test
    void forwardsComeFromWhereTheChunkLanded() {
        Chunks chunks = Chunks.byRows(SHARDS, 77, 256, 256);
        withMove(
                chunks,
                160,
                0,
                3,
                2,
                3,
                0,
                (memory, move) -> {
                    assertEquals(memory.landingAt(0, 0) + (300 + 768) * 160, move.fromAt());
                    assertEquals(memory.landingAt(3, 0) + (300 + 768) * 160, move.toAt());
                    assertEquals(1000 - 768, move.rows());
                });
    }

    @Test
    void partsOfRowsTravelAlone() {
        Chunks chunks = Chunks.byRows(SHARDS, 100, 300, 300).withChunkCols(64);
        withMove(
                chunks,
                208,
                0,
                1,
                0,
                1,
                0,
                (memory, move) -> {
                    assertEquals(memory.shardAt(0, 0) + 128, move.fromAt());
                    assertEquals(36 * 2, move.rowBytes());
                    assertEquals(208, move.fromPitch());
                    assertEquals(208, move.toPitch());
                });
    }

    @Test
    void theStagedWordGrowsOverAllCallsAndRoundTheRange() {
        Chunks chunks = Chunks.byRows(SHARDS, 64, 256, 256);
        with(
                chunks,
                128,
                memory -> {
                    int count = chunks.count(2);
                    assertEquals(4, count);
                    assertEquals(0, memory.ready(1, 2, 0) - 1);
                    for (int call :
                            new int[] {1, 2, 3, 536_870_912, 536_870_913, Integer.MAX_VALUE}) {
                        for (int chunk = 1; chunk < count; chunk++) {
                            int before = memory.ready(call, 2, chunk - 1);
                            assertEquals(1, memory.ready(call, 2, chunk) - before);
                        }
                        int next = memory.ready(call + 1, 2, 0) - memory.ready(call, 2, count - 1);
                        assertEquals(1, next, "after call " + call);
                    }
                    assertEquals(0, memory.ready(5, 1, -1), "an empty shard is always there");
                });
    }
}
