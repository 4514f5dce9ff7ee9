package dev.weft.bench;

import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.gemm.Float64Oracle;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Verifies what operators have computed from the rows that {@link GpuData} now has. For this the
 * rows are others than those of the timed calls: who reads a row before it has arrived finds an old
 * one, and is found out. Used by one thread.
 */
final class GpuJudge {

    private static final int SAMPLED_ROWS = 16;

    private final GpuBench bench;
    private final GpuData data;
    private final List<GpuCheck> checks = new ArrayList<>();

    GpuJudge(GpuBench bench, GpuData data) {
        this.bench = bench;
        this.data = data;
    }

    List<GpuCheck> checks() {
        return List.copyOf(checks);
    }

    /** Every element of a product, on the device. */
    void product(String who, DeviceMatrix c) {
        checks.add(
                GpuCheck.within(
                        who + ": product", bench.check().product(data.a(), data.b(), false, c)));
    }

    /** Every byte of gathered A, where the operator has it. */
    void gathered(String who, CudaAllGatherMatmul operator) {
        operator.gathered().ifPresent(rows -> sameBits(who + ": gathered rows", rows, data.a()));
    }

    void sameBits(String what, DeviceMatrix x, DeviceMatrix y) {
        checks.add(GpuCheck.equal(what, bench.check().equal(x, y)));
    }

    /** Some rows of a product, in float64 on the CPU. */
    void float64(String who, DeviceMatrix c) {
        long[] rows = sample(c.rows());
        // Shared, so that all cores take part.
        try (Arena arena = Arena.ofShared()) {
            Float64Oracle oracle =
                    new Float64Oracle(
                            data.download(data.a(), rows, arena), data.downloadB(arena), false);
            checks.add(
                    GpuCheck.within(
                            who + ": " + rows.length + " rows in float64",
                            oracle.check(data.download(c, rows, arena))));
        }
    }

    /** Evenly spread, with the first and the last one. */
    private static long[] sample(long rows) {
        return LongStream.range(0, SAMPLED_ROWS)
                .map(i -> i * (rows - 1) / (SAMPLED_ROWS - 1))
                .distinct()
                .toArray();
    }
}
