package dev.weft.bench.cpu;

import com.sun.management.ThreadMXBean;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.util.Arrays;

/**
 * What calls of an operator allocate on the heap, on all threads of all ranks together.
 *
 * <p>Code that is not compiled yet may allocate, and compilation comes when it comes. So calls are
 * measured in windows, and the window with the least counts: what every call allocates is in all of
 * them.
 */
final class HeapUse {

    private static final int RANKS = 2;
    private static final long SIZE = 64;
    private static final int CALLS_PER_WINDOW = 60;
    private static final int MOST_WINDOWS = 300;

    static final String DESCRIPTION =
            RANKS + " ranks, " + SIZE + " x " + SIZE + " x " + SIZE + " fp32";

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private HeapUse() {}

    /** Bytes of one call in the steady state. */
    static double bytesPerCall(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(RANKS)) {
            Matrix a = Matrix.allocate(arena, DType.FP32, SIZE, SIZE);
            Matrix b = Matrix.allocate(arena, DType.FP32, SIZE, SIZE);
            new NormalData(1, 0).fill(a);
            new NormalData(1, 1).fill(b);
            Shards shards = Shards.even(SIZE, RANKS);
            long least =
                    world.call(fabric -> leastBytes(fabric, algorithm, shards, a, b)).getFirst();
            return least / (double) CALLS_PER_WINDOW;
        }
    }

    private static long leastBytes(
            Fabric fabric, Algorithm algorithm, Shards shards, Matrix a, Matrix b) {
        int rank = fabric.rank();
        Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
        try (AllGatherMatmul operator =
                AllGatherMatmul.on(fabric)
                        .a(shards, DType.FP32)
                        .b(b)
                        .algorithm(algorithm)
                        .computeWorkers(1)
                        .prepare()) {
            long[] threads = ownThreads(rank);
            long least = Long.MAX_VALUE;
            for (int window = 0; window < MOST_WINDOWS && least > 0; window++) {
                long bytes = windowBytes(operator, shard, threads);
                // All ranks together, so that they make the same number of calls.
                least = Math.min(least, Arrays.stream(fabric.exchange(bytes)).sum());
            }
            return least;
        }
    }

    /** The rank's caller, lanes and compute workers. */
    private static long[] ownThreads(int rank) {
        String workers = "weft-" + rank + "-";
        long caller = Thread.currentThread().threadId();
        return Arrays.stream(THREADS.getThreadInfo(THREADS.getAllThreadIds()))
                .filter(info -> info != null)
                .filter(
                        info ->
                                info.getThreadId() == caller
                                        || info.getThreadName().startsWith(workers))
                .mapToLong(info -> info.getThreadId())
                .toArray();
    }

    /** Both kinds of call: with a shard to copy, and with the shard in place. */
    private static long windowBytes(AllGatherMatmul operator, Matrix shard, long[] threads) {
        long before = allocatedBytes(threads);
        for (int call = 0; call < CALLS_PER_WINDOW; call++) {
            if (call % 2 == 0) {
                operator.call(shard);
            } else {
                operator.nextShard();
                operator.callInPlace(View.PIPELINED);
            }
        }
        return allocatedBytes(threads) - before;
    }

    private static long allocatedBytes(long[] threads) {
        long sum = 0;
        for (long thread : threads) {
            sum += THREADS.getThreadAllocatedBytes(thread);
        }
        return sum;
    }
}
