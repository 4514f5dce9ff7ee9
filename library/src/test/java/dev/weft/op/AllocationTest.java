package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Calls allocate nothing on the heap, on none of the threads that take part.
 *
 * <p>Code that is not compiled yet may allocate (the Vector API does, until its kernels are), and
 * compilation comes when it comes. So calls are measured in windows until one window is clean; what
 * each call allocates would show in all of them: the smallest object is 16 bytes, and 60 calls
 * would make that 960. The tolerance is for what the runtime does now and then, a few objects at
 * most.
 */
class AllocationTest {

    private static final int CALLS_PER_WINDOW = 60;
    private static final int MOST_WINDOWS = 400;
    private static final long TOLERATED_BYTES = 512;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void callsAllocateNothing(Algorithm algorithm) {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, Shards.of(20, 0, 13), 40, 30, DType.BF16, 3);
        Ranks.run(
                3,
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric)
                                    .output(DType.BF16)
                                    .algorithm(algorithm)
                                    .computeWorkers(2)
                                    .columnParts(2)
                                    .chunkRows(4)
                                    .keepGathered()
                                    .prepare()) {
                        awaitCleanWindow(
                                fabric, op, problem.shard(fabric.rank()), algorithm.label());
                    }
                });
    }

    @Test
    void callsWithAnEpilogueAllocateNothing() {
        Arena arena = Arena.ofAuto();
        Problem problem = Problem.create(arena, Shards.of(20, 0, 13), 40, 30, DType.BF16, 3);
        Matrix bias = Matrix.allocate(arena, DType.FP32, 1, 30);
        Matrix residual = Matrix.allocate(arena, DType.BF16, 33, 30);
        Ranks.run(
                3,
                fabric -> {
                    try (AllGatherMatmul op =
                            problem.on(fabric)
                                    .b(problem.b())
                                    .output(DType.BF16)
                                    .algorithm(Algorithm.RING)
                                    .computeWorkers(2)
                                    .chunkRows(4)
                                    .epilogue(
                                            Epilogue.none()
                                                    .bias(bias)
                                                    .gelu()
                                                    .swiglu()
                                                    .geluTanh()
                                                    .residual(residual))
                                    .prepare()) {
                        awaitCleanWindow(fabric, op, problem.shard(fabric.rank()), "ring");
                    }
                });
    }

    @ParameterizedTest
    @EnumSource(Reduction.class)
    void callsThatReduceAllocateNothing(Reduction reduction) {
        Arena arena = Arena.ofAuto();
        Shards rows = Shards.of(20, 0, 13);
        Matrix a = Matrix.allocate(arena, DType.BF16, 33, 10);
        Matrix b = Matrix.allocate(arena, DType.BF16, 10, 300);
        Ranks.run(
                3,
                fabric -> {
                    try (MatmulAllReduce op =
                            MatmulAllReduce.on(fabric)
                                    .a(rows, Shards.even(30, 3), DType.BF16)
                                    .b(b)
                                    .algorithm(reduction)
                                    .engine("portable")
                                    .computeWorkers(2)
                                    .splitsPerRank(3)
                                    .epilogue(Epilogue.none().silu())
                                    .prepare()) {
                        awaitCleanWindow(fabric, op, a, reduction.label());
                    }
                });
    }

    private static void awaitCleanWindow(
            Fabric fabric, Operator<Matrix> op, Matrix shard, String what) {
        long[] threads = ownThreads(fabric.rank());
        long least = Long.MAX_VALUE;
        for (int window = 0; window < MOST_WINDOWS; window++) {
            long bytes = measure(op, shard, threads);
            // All ranks together: they must make the same calls.
            least = Math.min(least, Arrays.stream(fabric.exchange(bytes)).sum());
            if (least <= TOLERATED_BYTES) {
                return;
            }
        }
        assertTrue(
                least <= TOLERATED_BYTES,
                what + ": " + CALLS_PER_WINDOW + " calls allocated " + least + " bytes at least");
    }

    /** The rank's caller, lanes and compute workers. */
    private static long[] ownThreads(int rank) {
        String workers = "weft-" + rank + "-";
        long caller = Thread.currentThread().threadId();
        long[] ids =
                Arrays.stream(THREADS.getThreadInfo(THREADS.getAllThreadIds()))
                        .filter(info -> info != null)
                        .filter(
                                info ->
                                        info.getThreadId() == caller
                                                || info.getThreadName().startsWith(workers))
                        .mapToLong(info -> info.getThreadId())
                        .toArray();
        assertTrue(ids.length >= 2, "a caller and at least a compute worker");
        return ids;
    }

    private static long measure(Operator<Matrix> op, Matrix shard, long[] threads) {
        long looking = allocated(threads);
        long before = allocated(threads);
        looking = before - looking;
        for (int call = 0; call < CALLS_PER_WINDOW; call++) {
            if (call % 2 == 0) {
                op.call(shard);
            } else {
                op.nextShard();
                op.callInPlace(View.PIPELINED);
            }
        }
        return allocated(threads) - before - looking;
    }

    private static long allocated(long[] threads) {
        long sum = 0;
        for (long id : threads) {
            sum += THREADS.getThreadAllocatedBytes(id);
        }
        return sum;
    }
}
