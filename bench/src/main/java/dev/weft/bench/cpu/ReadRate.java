package dev.weft.bench.cpu;

import java.util.Arrays;

/**
 * How fast some threads together read as many bytes as a weight has, each its own part, four places
 * of it at a time: with one place, a thread of a Xeon reads 0.8 as fast.
 */
final class ReadRate extends MachineRate {

    private static final int PLACES = 4;

    private final long[] memory;

    /** Keeps the JIT compiler from leaving out the reads. */
    private final long[] sums;

    ReadRate(int threads, long bytes) {
        super(threads);
        this.memory = new long[Math.toIntExact(bytes / Long.BYTES)];
        this.sums = new long[threads];
        // Reads of memory that was never written all go to one page.
        Arrays.fill(memory, 1);
    }

    /** Bytes. */
    @Override
    double amount() {
        return (double) places() * PLACES * threads() * Long.BYTES;
    }

    @Override
    void work(int thread, Begin begin) throws Exception {
        begin.together();
        sums[thread] = sum(memory, thread * places() * PLACES, places());
    }

    private int places() {
        return memory.length / (PLACES * threads());
    }

    private static long sum(long[] memory, int from, int count) {
        long sum0 = 0;
        long sum1 = 0;
        long sum2 = 0;
        long sum3 = 0;
        for (int i = from; i < from + count; i++) {
            sum0 += memory[i];
            sum1 += memory[i + count];
            sum2 += memory[i + 2 * count];
            sum3 += memory[i + 3 * count];
        }
        return sum0 + sum1 + sum2 + sum3;
    }
}
