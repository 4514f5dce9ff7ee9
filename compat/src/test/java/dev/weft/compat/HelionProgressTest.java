package dev.weft.compat;

import static dev.weft.compat.HelionMatrices.normal;
import static dev.weft.compat.HelionMatrices.shard;
import static dev.weft.compat.HelionMatrices.unfused;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.process.Uninterruptibly;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** The words of progress: whose they are, who resets them and in which order they are set. */
class HelionProgressTest {

    @Test
    void gatheredAProgressAndShardServeCallAfterCall() {
        int ranks = 3;
        int calls = 5;
        Arena arena = Arena.ofAuto();
        Matrix b = normal(arena, DType.FP16, 24, 10, 1);
        Matrix[] as = new Matrix[calls];
        Matrix[] goldens = new Matrix[calls];
        for (int call = 0; call < calls; call++) {
            as[call] = normal(arena, DType.FP16, 8 * ranks, 24, 10 + call);
            goldens[call] = unfused(arena, as[call], b, false);
        }
        Ranks.run(
                ranks,
                fabric -> {
                    Matrix aOut = Matrix.allocate(arena, DType.FP16, 8 * ranks, 24);
                    HelionProgress progress = Helion.progress(fabric, 4);
                    try (HelionShared<Matrix> shared = Helion.empty(fabric, 8, 24, DType.FP16)) {
                        assertEquals(4 * ranks, progress.size());
                        Matrix before = null;
                        for (int call = 0; call < calls; call++) {
                            shared.local().copyFrom(as[call].rows(fabric.rank() * 8L, 8));
                            // Other splits in every call: fewer than it has room for are fine.
                            int splits = 1 + call % 4;
                            splits = splits == 3 ? 4 : splits;
                            HelionResult<Matrix> result =
                                    Helion.allGatherMatmul(
                                            fabric, shared, b, false, aOut, progress, splits);
                            assertSame(aOut, result.aOut());
                            assertNotSame(before, result.c());
                            before = result.c();
                            assertTrue(aOut.bitwiseEquals(as[call]), "call " + call);
                            assertTrue(result.c().bitwiseEquals(goldens[call]), "call " + call);
                            assertAllReady(progress, ranks, splits);
                        }
                    }
                });
    }

    private static void assertAllReady(HelionProgress progress, int ranks, int splits) {
        for (int source = 0; source < ranks; source++) {
            for (int split = 0; split < splits; split++) {
                // Returns at once, or names the chunk that is missing.
                progress.await(source, split);
            }
        }
    }

    /** Both halves on their own: first the gather to its end, then the product. */
    @Test
    void theCopyEngineAndTheProductStandAlone() {
        int ranks = 3;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 12 * ranks, 16, 0);
        Matrix b = normal(arena, DType.BF16, 16, 9, 1);
        Matrix golden = unfused(arena, a, b, false);
        Ranks.run(
                ranks,
                fabric -> {
                    int[] words = new int[3 * ranks];
                    HelionProgress progress = Helion.progress(fabric, MemorySegment.ofArray(words));
                    try (HelionShared<Matrix> shared = shard(fabric, a)) {
                        Matrix out = Matrix.allocate(arena, DType.BF16, a.rows(), 16);
                        HelionGather gather =
                                Helion.copyEngineAllGatherWithProgress(out, shared, progress, 3);
                        gather.await();
                        assertTrue(out.bitwiseEquals(a));
                        assertAllReady(progress, ranks, 3);
                        Matrix c =
                                Helion.matmulWithProgress(
                                        out, shared, b, false, progress, 3, fabric.rank());
                        assertTrue(c.bitwiseEquals(golden));
                        progress.begin(2);
                        assertArrayEquals(
                                new int[3 * ranks], words, "a new round starts with none");
                    }
                });
    }

    /** As in the example, where the whole call resets the words, not the copy engine. */
    @Test
    void theCopyEngineResetsNoWord() {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 8, 4, 0);
        Ranks.run(
                2,
                fabric -> {
                    int[] words = {7, 7, 7, 7, 7};
                    HelionProgress progress = Helion.progress(fabric, MemorySegment.ofArray(words));
                    try (HelionShared<Matrix> shared = shard(fabric, a)) {
                        Matrix out = Matrix.allocate(arena, DType.BF16, 8, 4);
                        Helion.copyEngineAllGatherWithProgress(out, shared, progress, 2).await();
                        assertTrue(out.bitwiseEquals(a));
                        assertArrayEquals(new int[] {1, 1, 1, 1, 7}, words);
                        Matrix b = normal(arena, DType.BF16, 4, 3, 1);
                        Helion.allGatherMatmul(fabric, shared, b, false, out, progress, 2);
                        assertArrayEquals(new int[] {1, 1, 1, 1, 0}, words);
                    }
                });
    }

    /** Words of the caller's in any memory, on some ranks only: 0 at first, 1 at the end. */
    @Test
    void progressIsAnyWordsOfTheCallersOnAnyRanks() {
        int ranks = 4;
        int splits = 3;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 6 * ranks, 16, 0);
        Matrix b = normal(arena, DType.BF16, 16, 9, 1);
        Matrix golden = unfused(arena, a, b, false);
        Ranks.run(
                ranks,
                fabric -> {
                    int[] onHeap = new int[ranks * splits + 2];
                    Arrays.fill(onHeap, 7);
                    MemorySegment words =
                            switch (fabric.rank()) {
                                case 0 -> MemorySegment.ofArray(onHeap);
                                case 1 -> arena.allocateFrom(JAVA_INT, onHeap).asSlice(4);
                                default -> null;
                            };
                    HelionProgress progress = words == null ? null : Helion.progress(fabric, words);
                    try (HelionShared<Matrix> shared = shard(fabric, a)) {
                        for (int call = 0; call < 3; call++) {
                            HelionResult<Matrix> result =
                                    Helion.allGatherMatmul(
                                            fabric, shared, b, false, null, progress, splits);
                            assertTrue(result.c().bitwiseEquals(golden), "call " + call);
                            if (words != null) {
                                int[] expected = new int[(int) (words.byteSize() / 4)];
                                Arrays.fill(expected, 0, ranks * splits, 1);
                                assertArrayEquals(expected, words.toArray(JAVA_INT));
                            }
                        }
                    }
                });
    }

    /** Whoever writes 1 has published the chunk: words are all that a product looks at. */
    @Test
    void aCallerMayPublishByWritingOne() {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.FP32, 12, 5, 0);
        Matrix b = normal(arena, DType.FP32, 5, 7, 1);
        Matrix golden = unfused(arena, a, b, false);
        Ranks.run(
                1,
                fabric -> {
                    MemorySegment words = arena.allocate(JAVA_INT, 3);
                    HelionProgress progress = Helion.progress(fabric, words);
                    try (HelionShared<Matrix> shared = Helion.empty(fabric, 12, 5, DType.FP32)) {
                        Thread writer =
                                Thread.ofPlatform()
                                        .start(
                                                () -> {
                                                    for (long at = 0; at < 12; at += 4) {
                                                        JAVA_INT.varHandle()
                                                                .setRelease(words, at, 1);
                                                    }
                                                });
                        Matrix c = Helion.matmulWithProgress(a, shared, b, false, progress, 3, 0);
                        writer.join();
                        assertTrue(c.bitwiseEquals(golden));
                    }
                });
    }

    /**
     * Watches the words of real calls: whenever a chunk is there, all chunks that are pulled before
     * it are there too, from the successor's first one to the own shard's last one.
     */
    @Test
    void theSuccessorIsPulledFirstAndTheOwnShardLast() {
        int ranks = 4;
        int splits = 16;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 256 * ranks, 512, 0);
        Matrix b = normal(arena, DType.BF16, 512, 8, 1);
        MemorySegment[] words = new MemorySegment[ranks];
        Arrays.setAll(words, r -> arena.allocate(JAVA_INT, ranks * splits));
        AtomicIntegerArray partial = new AtomicIntegerArray(ranks);
        // Odd while a rank is between two calls, when its words are no picture of one.
        AtomicIntegerArray turns = new AtomicIntegerArray(ranks);
        AtomicReference<AssertionError> wrong = new AtomicReference<>();
        AtomicBoolean over = new AtomicBoolean();
        Thread watcher =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    while (!over.get()) {
                                        for (int r = 0; r < ranks; r++) {
                                            int turn = turns.get(r);
                                            int[] seen = pulled(words[r], r, ranks, splits);
                                            if (turn % 2 == 0 && turns.get(r) == turn) {
                                                judge(seen, r, partial, wrong);
                                            }
                                        }
                                    }
                                });
        try {
            Ranks.run(
                    ranks,
                    fabric -> {
                        int rank = fabric.rank();
                        HelionProgress progress = Helion.progress(fabric, words[rank]);
                        try (HelionShared<Matrix> shared = shard(fabric, a)) {
                            boolean seen = false;
                            for (int call = 0; call < 2000 && !seen; call++) {
                                turns.incrementAndGet(rank);
                                words[rank].fill((byte) 0);
                                turns.incrementAndGet(rank);
                                HelionResult<Matrix> result =
                                        Helion.allGatherMatmul(
                                                fabric, shared, b, false, null, progress, splits);
                                assertTrue(result.aOut().bitwiseEquals(a));
                                long mine = partial.get(rank) > 0 ? 1 : 0;
                                seen = LongStream.of(fabric.exchange(mine)).allMatch(s -> s == 1);
                            }
                            assertTrue(seen, "no call was seen half done on every rank");
                        }
                    });
        } finally {
            over.set(true);
            Uninterruptibly.join(watcher);
        }
        if (wrong.get() != null) {
            throw wrong.get();
        }
    }

    /** The words in the order of the pulls, read from the last to the first. */
    private static int[] pulled(MemorySegment words, int rank, int ranks, int splits) {
        int[] seen = new int[ranks * splits];
        for (int i = seen.length - 1; i >= 0; i--) {
            int source = (rank + 1 + i / splits) % ranks;
            long word = 4L * (source * splits + i % splits);
            seen[i] = (int) JAVA_INT.varHandle().getAcquire(words, word);
        }
        return seen;
    }

    private static void judge(
            int[] seen,
            int rank,
            AtomicIntegerArray partial,
            AtomicReference<AssertionError> wrong) {
        int there = IntStream.of(seen).sum();
        if (there > 0 && there < seen.length) {
            partial.incrementAndGet(rank);
        }
        if (IntStream.range(0, there).anyMatch(i -> seen[i] == 0)) {
            wrong.compareAndSet(null, new AssertionError(Arrays.toString(seen)));
        }
    }
}
