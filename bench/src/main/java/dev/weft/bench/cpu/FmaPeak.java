package dev.weft.bench.cpu;

import dev.weft.gemm.code.Arguments;
import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * The most fp32 operations that some threads can do at once: two tiles in the nearest cache, over
 * and over, 0.994 of what Neoverse-N1 can do by its clock. A turn of a few milliseconds, to be
 * taken between the turns of products. Used by one thread; its workers wait without a core of their
 * own.
 */
final class FmaPeak implements AutoCloseable {

    private static final int CALLS = 1000;
    private static final int TILES = 2;
    private static final int MOST_DEPTH = 256;

    /** Of operands: with the sums they fit the smallest of nearest caches, 32 KiB. */
    private static final int OPERAND_BYTES = 28 << 10;

    /** Written once. */
    private static final class Code {
        static final Tiles TILES = TileCode.forThisMachine();
    }

    private final Tiles tiles = Code.TILES;
    private final int depth =
            Math.min(
                    MOST_DEPTH,
                    OPERAND_BYTES / ((TILES * tiles.rows() + tiles.cols()) * Float.BYTES));
    private final int threads;
    private final ExecutorService workers;
    private final CyclicBarrier barrier;

    FmaPeak(int threads) {
        this.threads = threads;
        this.barrier = new CyclicBarrier(threads);
        this.workers =
                Executors.newFixedThreadPool(
                        threads, Thread.ofPlatform().daemon().name("weft-fma-", 0).factory());
    }

    /** Operations of one turn, of all threads together. */
    double flops() {
        return 2.0 * TILES * tiles.rows() * tiles.cols() * depth * CALLS * threads;
    }

    /** From the first thread's start to the last one's end. */
    long takeNs() throws InterruptedException {
        List<Callable<long[]>> tasks = Collections.nCopies(threads, this::work);
        long startNs = Long.MAX_VALUE;
        long endNs = Long.MIN_VALUE;
        for (Future<long[]> future : workers.invokeAll(tasks)) {
            long[] span = result(future);
            startNs = Math.min(startNs, span[0]);
            endNs = Math.max(endNs, span[1]);
        }
        return endNs - startNs;
    }

    private static long[] result(Future<long[]> future) throws InterruptedException {
        try {
            return future.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException("the peak could not be measured", e.getCause());
        }
    }

    private long[] work() throws Exception {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = floats(arena, TILES * tiles.rows() * depth);
            MemorySegment b = floats(arena, tiles.cols() * depth);
            MemorySegment sums = floats(arena, TILES * tiles.rows() * tiles.cols());
            Arguments arguments = new Arguments(arena.allocate(Arguments.BYTES, 8));
            long pitch = (long) tiles.cols() * Float.BYTES;
            barrier.await();
            long startNs = System.nanoTime();
            for (int call = 0; call < CALLS; call++) {
                tiles.sum(
                        false,
                        a,
                        0,
                        TILES,
                        tiles.rows(),
                        depth,
                        b,
                        0,
                        tiles.cols(),
                        sums,
                        0,
                        pitch,
                        arguments);
            }
            return new long[] {startNs, System.nanoTime()};
        }
    }

    private static MemorySegment floats(Arena arena, int count) {
        return arena.allocate((long) count * Float.BYTES, 64);
    }

    @Override
    public void close() {
        workers.shutdownNow();
    }
}
