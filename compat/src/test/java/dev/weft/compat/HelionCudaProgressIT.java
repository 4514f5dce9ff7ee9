package dev.weft.compat;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.ffi.CudaMemory;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The words of progress of the Helion calls on a GPU. */
@Tag("gpu")
class HelionCudaProgressIT extends HelionOnGpu {

    /** The others have words of their own, and of other numbers of splits. */
    @Test
    void progressMayBeGivenOnOneRankOnly() {
        int ranks = 3;
        ranks(ranks, DType.BF16, 192, 264, 392, false)
                .run(
                        bench -> {
                            for (int call = 0; call < 2 * ranks; call++) {
                                int rank = bench.fabric.rank();
                                int splits = 2 + call % 3;
                                int chunks = ranks * splits;
                                boolean given = rank == call % ranks;
                                DeviceProgress progress = given ? bench.progress(chunks) : null;
                                int[] seen = bench.call(null, progress, given ? splits : 1, call);
                                assertArrayEquals(given ? ones(chunks, chunks) : null, seen);
                            }
                        });
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void theCopyEngineAndTheProductStandAlone(int ranks) {
        int splits = 4;
        ranks(ranks, DType.BF16, 256, 320, 264, false)
                .run(
                        bench -> {
                            bench.fill(1);
                            DeviceMatrix output =
                                    bench.matrix(DType.BF16, bench.a.rows(), bench.a.cols());
                            bench.check.poison(output);
                            int words = ranks * splits + 1;
                            DeviceProgress progress = bench.progress(words);
                            progress.reset(bench.stream);
                            // One more than the chunks: the copy engine resets none.
                            progress.publish(words - 1, bench.stream);
                            try (HelionGather gather =
                                            HelionCuda.copyEngineAllGatherWithProgress(
                                                    output,
                                                    bench.shared,
                                                    progress,
                                                    splits,
                                                    bench.stream);
                                    HelionResult<DeviceMatrix> product =
                                            HelionCuda.matmulWithProgress(
                                                    output,
                                                    bench.shared,
                                                    bench.b,
                                                    false,
                                                    progress,
                                                    splits,
                                                    bench.fabric.rank(),
                                                    bench.stream)) {
                                product.await();
                                gather.await();
                                bench.assertRight(output, product.c(), ranks + " ranks");
                                assertArrayEquals(ones(words, words), words(progress));
                            }
                        });
    }

    /**
     * Progress in host memory that the GPU reaches, so that the words of a call can be watched. The
     * stream has work to do before the copies, so that the call is back and looks by then.
     */
    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void theSuccessorIsPulledFirstAndTheOwnShardLast(int ranks) {
        int splits = 8;
        int chunks = ranks * splits;
        long bytes = 1L << 32;
        try (DeviceBuffer much = DeviceBuffer.allocate(bytes)) {
            ranks(ranks, DType.BF16, 8192, 8192, 64, false)
                    .run(
                            bench -> {
                                try (PinnedBuffer words = PinnedBuffer.allocate(4L * chunks)) {
                                    bench.fill(1);
                                    DeviceProgress progress =
                                            new DeviceProgress(
                                                    CudaMemory.hostDevicePointer(words.segment()),
                                                    chunks);
                                    boolean seen = false;
                                    for (int call = 0; call < 20 && !seen; call++) {
                                        words.segment().fill((byte) 0);
                                        for (int i = 0; i < 40; i++) {
                                            CudaMemory.fill8Async(
                                                    much.address(),
                                                    (byte) i,
                                                    bytes,
                                                    bench.stream.handle());
                                        }
                                        int partial = watchedCall(bench, progress, words, splits);
                                        long[] all = bench.fabric.exchange(partial);
                                        seen = Arrays.stream(all).allMatch(states -> states > 0);
                                    }
                                    assertTrue(seen, "no gather was seen half done on every rank");
                                }
                            });
        }
    }

    private int watchedCall(Bench bench, DeviceProgress progress, PinnedBuffer words, int splits) {
        try (HelionResult<DeviceMatrix> result = bench.start(null, null, progress, splits, null)) {
            int partial = watch(words.segment(), bench.fabric.rank(), bench.fabric.size(), splits);
            result.await();
            bench.assertRight(result.aOut(), result.c(), "watched");
            return partial;
        }
    }

    /** How many states were seen on the way; each is a beginning of the order of the pulls. */
    private static int watch(MemorySegment words, int rank, int ranks, int splits) {
        Set<Integer> states = new HashSet<>();
        long start = System.nanoTime();
        int there = 0;
        while (there < ranks * splits) {
            assertTrue(System.nanoTime() - start < DEADLINE.toNanos(), there + " chunks came");
            int[] seen = new int[ranks * splits];
            // From the last to the first: whatever is there stays there.
            for (int i = seen.length - 1; i >= 0; i--) {
                int source = (rank + 1 + i / splits) % ranks;
                long word = 4L * (source * splits + i % splits);
                seen[i] = (int) JAVA_INT.varHandle().getAcquire(words, word);
            }
            there = Arrays.stream(seen).sum();
            for (int i = 0; i < there; i++) {
                assertEquals(1, seen[i], "in the order of the pulls: " + Arrays.toString(seen));
            }
            states.add(there);
        }
        states.remove(0);
        states.remove(ranks * splits);
        return states.size();
    }
}
