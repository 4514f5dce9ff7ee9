package dev.weft.compat;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.process.Uninterruptibly;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import dev.weft.trace.Timeline.Track;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Gathered A and product of the Helion calls, and what may be used again. */
class HelionTest {

    /** One single-threaded product of the whole A. */
    private static Matrix unfused(Arena arena, Matrix a, Matrix b, boolean transposed) {
        Gemm gemm = Gemms.auto(a.dtype(), b.dtype());
        PackedB packed = gemm.pack(b, transposed, arena);
        DType type = DType.promote(a.dtype(), b.dtype());
        Matrix c = Matrix.allocate(arena, type, a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }

    private static Matrix normal(Arena arena, DType dtype, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(3, stream).fill(matrix);
        return matrix;
    }

    private static HelionShared<Matrix> shard(Fabric fabric, Matrix a) {
        long rows = a.rows() / fabric.size();
        HelionShared<Matrix> shared = Helion.empty(fabric, rows, a.cols(), a.dtype());
        shared.local().copyFrom(a.rows(fabric.rank() * rows, rows));
        return shared;
    }

    @ParameterizedTest
    @ValueSource(ints = {4, 8})
    void theOriginalsTestInSmall(int ranks) {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 256, 512, 0);
        // Stored as [N, K]: the original's B is a transposed view of such a one.
        Matrix b = normal(arena, DType.BF16, 208, 512, 1);
        Matrix golden = unfused(arena, a, b, true);
        Ranks.run(
                ranks,
                fabric -> {
                    try (HelionShared<Matrix> shared = shard(fabric, a)) {
                        HelionResult<Matrix> result =
                                Helion.allGatherMatmul(fabric, shared, b, true, null, null, 1);
                        assertTrue(result.aOut().bitwiseEquals(a), "gathered A");
                        assertTrue(result.c().bitwiseEquals(golden), "product");
                        Deviation deviation =
                                new Float64Oracle(a, b, true).check(result.c(), 0, 31, 32, 255);
                        assertTrue(deviation.withinBound(), deviation.describe());
                    }
                });
    }

    @Test
    void randomShapesTypesSplitsAndLayouts() {
        long seed = 20260102;
        Random random = new Random(seed);
        for (int round = 0; round < 25; round++) {
            int ranks = 1 + random.nextInt(5);
            long rows = random.nextInt(8) == 0 ? 0 : 1 + random.nextInt(150);
            long k = 1 + random.nextInt(60);
            long n = 1 + random.nextInt(60);
            DType aType = DType.values()[random.nextInt(3)];
            DType bType = DType.values()[random.nextInt(3)];
            boolean transposed = random.nextBoolean();
            int splits = divisor(random, rows * k);
            String which = "seed " + seed + " round " + round + " splits " + splits;
            Arena arena = Arena.ofAuto();
            Matrix a = normal(arena, aType, rows * ranks, k, 0);
            Matrix b = normal(arena, bType, transposed ? n : k, transposed ? k : n, 1);
            Matrix golden = unfused(arena, a, b, transposed);
            Ranks.run(
                    ranks,
                    fabric -> {
                        try (HelionShared<Matrix> shared = shard(fabric, a)) {
                            HelionResult<Matrix> result =
                                    Helion.allGatherMatmul(
                                            fabric, shared, b, transposed, null, null, splits);
                            assertTrue(result.aOut().bitwiseEquals(a), which);
                            assertEquals(DType.promote(aType, bType), result.c().dtype());
                            assertTrue(result.c().bitwiseEquals(golden), which);
                        }
                    });
        }
    }

    /** Splits that end inside of rows too. */
    private static int divisor(Random random, long elements) {
        int splits = 1 + random.nextInt(12);
        while (elements % splits != 0) {
            splits--;
        }
        return splits;
    }

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

    @Test
    void aPlainMatrixIsStaged() {
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.FP32, 10, 7, 0);
        Matrix b = normal(arena, DType.BF16, 7, 5, 1);
        Matrix golden = unfused(arena, a, b, false);
        Ranks.run(
                2,
                fabric -> {
                    Matrix mine = a.rows(fabric.rank() * 5L, 5);
                    HelionResult<Matrix> result =
                            Helion.allGatherMatmul(fabric, mine, b, false, null, null, 5);
                    assertTrue(result.aOut().bitwiseEquals(a));
                    assertTrue(result.c().bitwiseEquals(golden));
                });
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

    /**
     * Every chunk is copied and every row multiplied in the spans, whose order is that of pulls.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theTimelineIsWhatTheThreadsDid(boolean tiles) {
        int ranks = 3;
        int splits = 2;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 12 * ranks, 16, 0);
        Matrix b = normal(arena, DType.BF16, 16, 9, 1);
        Helion.Config config = tiles ? new Helion.Config(5, 4, 8, 1, 1) : null;
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (HelionShared<Matrix> shared = shard(fabric, a)) {
                        Timeline timeline =
                                Helion.allGatherMatmul(
                                                fabric, shared, b, false, null, null, null, splits,
                                                config)
                                        .timeline()
                                        .orElseThrow();
                        assertEquals(rank, timeline.rank());
                        List<Span> copies = timeline.tracks().getFirst().spans();
                        assertEquals("lane-0", timeline.tracks().getFirst().name());
                        List<Integer> sources = copies.stream().map(Span::source).toList();
                        int next = (rank + 1) % ranks;
                        int last = (rank + 2) % ranks;
                        assertEquals(List.of(next, next, last, last, rank, rank), sources);
                        assertEquals(
                                2L * splits * 6 * 16 * 2,
                                copies.stream().mapToLong(Span::bytes).sum());
                        List<Span> products =
                                timeline.tracks().stream()
                                        .skip(1)
                                        .flatMap(track -> track.spans().stream())
                                        .filter(span -> span.kind() == Kind.COMPUTE)
                                        .toList();
                        assertEquals(
                                12L * ranks * (tiles ? 3 : 1),
                                products.stream().mapToLong(Span::rows).sum());
                        for (Track track : timeline.tracks()) {
                            long at = 0;
                            for (Span span : track.spans()) {
                                assertTrue(span.startNs() >= at, track.toString());
                                assertTrue(span.endNs() >= span.startNs(), track.toString());
                                at = span.endNs();
                            }
                            assertTrue(timeline.elapsedNs() >= at, track.toString());
                        }
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

    @Test
    void anyTileAndAProductOfTheCallersGiveTheSameBits() {
        int ranks = 2;
        Arena arena = Arena.ofAuto();
        Matrix a = normal(arena, DType.BF16, 70 * ranks, 48, 0);
        for (boolean transposed : new boolean[] {false, true}) {
            Matrix b = normal(arena, DType.FP16, transposed ? 75 : 48, transposed ? 48 : 75, 1);
            Matrix golden = unfused(arena, a, b, transposed);
            Ranks.run(
                    ranks,
                    fabric -> {
                        Matrix wide = Matrix.allocate(arena, DType.FP32, a.rows(), 80);
                        Matrix c = wide.block(0, a.rows(), 3, 75);
                        try (HelionShared<Matrix> shared = shard(fabric, a)) {
                            for (int[] tile : new int[][] {{128, 256}, {1, 1}, {32, 20}, {7, 75}}) {
                                Helion.Config config =
                                        new Helion.Config(tile[0], tile[1], 64, 8, 3);
                                HelionResult<Matrix> result =
                                        Helion.allGatherMatmul(
                                                fabric,
                                                shared,
                                                b,
                                                transposed,
                                                null,
                                                c,
                                                null,
                                                5,
                                                config);
                                assertSame(c, result.c());
                                assertTrue(c.bitwiseEquals(golden), config.toString());
                                new NormalData(9, 9).fill(c);
                            }
                        }
                    });
        }
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
