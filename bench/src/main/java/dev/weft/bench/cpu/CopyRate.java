package dev.weft.bench.cpu;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * How fast one core copies chunks while all cores do, as lanes copy them: out of one matrix that
 * all read, into a matrix of its own, each starting at another place.
 */
final class CopyRate {

    private static final int WARMUP_PASSES = 2;
    private static final int PASSES = 7;
    private static final long ALIGNMENT_BYTES = 64;

    private CopyRate() {}

    /**
     * Bytes per nanosecond of one core, the median over all cores and passes.
     *
     * @param matrixBytes what every core copies in one pass
     */
    static double perCore(int cores, long matrixBytes, long chunkBytes)
            throws InterruptedException {
        try (Arena arena = Arena.ofShared();
                ExecutorService threads = Executors.newFixedThreadPool(cores)) {
            MemorySegment source = arena.allocate(matrixBytes, ALIGNMENT_BYTES);
            CyclicBarrier barrier = new CyclicBarrier(cores);
            List<Callable<long[]>> copiers = new ArrayList<>();
            for (int core = 0; core < cores; core++) {
                MemorySegment target = arena.allocate(matrixBytes, ALIGNMENT_BYTES);
                long first = matrixBytes / chunkBytes * core / cores * chunkBytes;
                copiers.add(() -> copy(source, target, first, chunkBytes, barrier));
            }
            long[] ns =
                    threads.invokeAll(copiers).stream()
                            .map(Future::resultNow)
                            .flatMapToLong(Arrays::stream)
                            .sorted()
                            .toArray();
            return matrixBytes / (double) ns[ns.length / 2];
        }
    }

    private static long[] copy(
            MemorySegment source,
            MemorySegment target,
            long first,
            long chunkBytes,
            CyclicBarrier barrier)
            throws InterruptedException, BrokenBarrierException {
        long[] ns = new long[PASSES];
        for (int pass = -WARMUP_PASSES; pass < PASSES; pass++) {
            barrier.await();
            long startNs = System.nanoTime();
            copyChunks(source, target, first, source.byteSize(), chunkBytes);
            copyChunks(source, target, 0, first, chunkBytes);
            if (pass >= 0) {
                ns[pass] = System.nanoTime() - startNs;
            }
        }
        return ns;
    }

    private static void copyChunks(
            MemorySegment source, MemorySegment target, long from, long to, long chunkBytes) {
        for (long at = from; at < to; at += chunkBytes) {
            MemorySegment.copy(source, at, target, at, Math.min(chunkBytes, to - at));
        }
    }
}
