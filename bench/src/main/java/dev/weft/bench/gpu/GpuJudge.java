package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.gemm.Deviation;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * Verifies what operators have computed from the rows that {@link GpuOperands} now has. For this
 * the rows are others than those of the timed calls: who reads a row before it has arrived finds an
 * old one, and is found out. Used by one thread.
 */
final class GpuJudge {

    private final GpuOperands data;
    private final List<BenchRow.Check> checks = new ArrayList<>();

    GpuJudge(GpuOperands data) {
        this.data = data;
    }

    /** Every element against a bound. */
    static BenchRow.Check within(String what, DeviceCheck.Verdict verdict) {
        String worst = String.format(Locale.ROOT, "at worst %.3g of the bound", verdict.worst());
        return new BenchRow.Check(
                what, verdict.passed(), verdict.passed() ? worst : wrong(verdict) + ", " + worst);
    }

    /** Every bit. */
    static BenchRow.Check sameBits(GpuBench bench, String what, DeviceMatrix x, DeviceMatrix y) {
        DeviceCheck.Verdict verdict = bench.check().equal(x, y);
        return new BenchRow.Check(
                what, verdict.passed(), verdict.passed() ? "equal" : wrong(verdict));
    }

    private static String wrong(DeviceCheck.Verdict verdict) {
        return verdict.mismatches() + " wrong, the first is number " + verdict.firstIndex();
    }

    List<BenchRow.Check> checks() {
        return List.copyOf(checks);
    }

    /**
     * Every element of a product on the device; some rows in float64 if the device cannot.
     *
     * @return whether it can
     */
    boolean product(String who, DeviceMatrix c) {
        Optional<DeviceCheck.Verdict> verdict = data.check(c);
        verdict.ifPresentOrElse(
                found -> checks.add(within(who + ": product", found)), () -> float64(who, c));
        return verdict.isPresent();
    }

    /** Every byte of gathered A, where the operator has it. */
    void gathered(String who, CudaAllGatherMatmul operator) {
        operator.gathered().ifPresent(rows -> sameBits(who + ": gathered rows", rows, data.a()));
    }

    void sameBits(String what, DeviceMatrix x, DeviceMatrix y) {
        checks.add(sameBits(data.bench, what, x, y));
    }

    /** Some rows of a product, in float64 on the CPU. */
    void float64(String who, DeviceMatrix c) {
        long[] rows = ProductCheck.sample(c.rows());
        // Shared, so that all cores take part.
        try (Arena arena = Arena.ofShared()) {
            Deviation deviation = data.float64(c, rows, arena);
            checks.add(
                    new BenchRow.Check(
                            who + ": " + rows.length + " rows in float64",
                            deviation.withinBound(),
                            deviation.describe()));
        }
    }
}
