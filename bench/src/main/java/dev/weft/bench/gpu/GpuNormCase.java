package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.op.Epilogue;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * All-reduce, residual and RMSNorm in one call of ranks that share the GPU, beside PyTorch's
 * operations one after the other. Used by one thread.
 */
final class GpuNormCase {

    static final String ITEM = "norm";
    static final String FUSED = "fused";

    private static final double EPSILON = 1e-5;
    private static final long K = 4096;
    private static final long N = 8192;
    private static final long SEED = 43;

    private record Size(int ranks, long m) {

        String text() {
            return "%d ranks on one GPU, M %d K %d a rank N %d, bf16".formatted(ranks, m, K, N);
        }
    }

    private static final List<Size> SIZES =
            List.of(new Size(2, 128), new Size(2, 8192), new Size(4, 2048), new Size(4, 8192));

    private GpuNormCase() {}

    static void run(GpuBench bench, Consumer<BenchRow> sink)
            throws IOException, InterruptedException {
        for (Size size : bench.quick() ? SIZES.subList(0, 1) : SIZES) {
            sink.accept(GpuRow.attempt(ITEM, size.text(), () -> measured(bench, size)));
        }
    }

    private static BenchRow measured(GpuBench bench, Size size)
            throws IOException, InterruptedException {
        Shards kParts = Shards.even(size.ranks() * K, size.ranks());
        try (GpuSumsData data = new GpuSumsData(bench, DType.BF16, size.m(), kParts, N);
                Arena arena = Arena.ofShared();
                Resources opened = new Resources()) {
            data.refill(SEED);
            DeviceMatrix residual = GpuOperands.matrix(opened, DType.BF16, size.m(), N);
            bench.check().fillNormal(residual, SEED + 1, 1f);
            Matrix weight = Matrix.allocate(arena, DType.FP32, 1, N);
            weight.fill(() -> 1.25f);
            Epilogue epilogue = Epilogue.none().residual(() -> residual).rmsNorm(weight, EPSILON);
            List<BenchRow.Check> checks = new ArrayList<>();
            Map<String, Samples> times = new LinkedHashMap<>(fused(bench, data, epilogue, checks));
            if (bench.pytorch().isPresent()) {
                GpuPytorch pytorch = bench.pytorch().orElseThrow();
                if (pytorch.openNorm(size.ranks(), size.m(), K, N)) {
                    times.put(GpuPytorch.UNFUSED, unfused(bench, pytorch));
                }
                pytorch.free();
            }
            return row(size.text(), size.ranks(), size.m(), times, checks);
        }
    }

    private static Samples unfused(GpuBench bench, GpuPytorch pytorch)
            throws IOException, InterruptedException {
        long[] ns = new long[bench.iterations()];
        for (int round = -GpuSharedCase.QUICK_WARMUP; round < ns.length; round++) {
            ns[Math.max(0, round)] = pytorch.takeNormNs();
        }
        return Samples.ofNs(ns);
    }

    /** By the host's clock, until all ranks have all rows, which are to have one rank's bits. */
    private static Map<String, Samples> fused(
            GpuBench bench, GpuSumsData data, Epilogue epilogue, List<BenchRow.Check> checks) {
        long k = data.kParts().totalRows();
        try (CudaAllGatherMatmul alone = data.operatorOf(0, k, DType.BF16, epilogue)) {
            return GpuSharedSumsCase.take(
                    bench, data, FUSED, true, epilogue, alone.product(0), checks);
        }
    }

    /** A row from what was measured for it. Pure. */
    static BenchRow row(
            String name,
            int ranks,
            long m,
            Map<String, Samples> times,
            List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(ITEM, name, "PyTorch, one operation after the other", times);
        row.put("ranks", ranks, "m", m);
        if (!times.containsKey(GpuPytorch.UNFUSED)) {
            return row.row(Double.NaN, checks);
        }
        double speed = row.us(GpuPytorch.UNFUSED) / row.us(FUSED);
        return row.put("speed", speed).needs("fused", speed, "PyTorch", 1).row(speed, checks);
    }
}
