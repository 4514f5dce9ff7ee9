package dev.weft.bench;

import dev.weft.cuda.DeviceCheck;
import dev.weft.gemm.Deviation;
import java.util.Locale;

/**
 * One verification of a row.
 *
 * @param what was looked at
 * @param detail how close it was, or what is wrong
 */
record GpuCheck(String what, boolean passed, String detail) {

    /** Every element against a bound. */
    static GpuCheck within(String what, DeviceCheck.Verdict verdict) {
        String worst = String.format(Locale.ROOT, "at worst %.3g of the bound", verdict.worst());
        return new GpuCheck(
                what, verdict.passed(), verdict.passed() ? worst : wrong(verdict) + ", " + worst);
    }

    /** Every byte. */
    static GpuCheck equal(String what, DeviceCheck.Verdict verdict) {
        return new GpuCheck(what, verdict.passed(), verdict.passed() ? "equal" : wrong(verdict));
    }

    static GpuCheck within(String what, Deviation deviation) {
        return new GpuCheck(what, deviation.withinBound(), deviation.describe());
    }

    private static String wrong(DeviceCheck.Verdict verdict) {
        return verdict.mismatches() + " wrong, the first is number " + verdict.firstIndex();
    }
}
