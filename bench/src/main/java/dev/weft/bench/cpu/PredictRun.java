package dev.weft.bench.cpu;

import dev.weft.fabric.Fabric;
import dev.weft.op.Operator;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.sim.Sums;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.List;

/**
 * A call whose time is predicted and then measured. Immutable; any thread may call it.
 *
 * @param rows M of the product
 * @param inner K of the product
 * @param columns N of the product: few, so that there is much to gather beside it
 * @param even whether the shards are; otherwise each rank has as many times the first one's rows as
 *     its number
 * @param all of a product that is summed, whether every rank gets all rows
 */
record PredictRun(
        Algorithm algorithm,
        Reduction reduction,
        boolean all,
        int ranks,
        long rows,
        long inner,
        long columns,
        DType dtype,
        boolean even) {

    private static final DType FP32 = DType.FP32;
    private static final DType BF16 = DType.BF16;

    /** A gather. */
    PredictRun(
            Algorithm algorithm,
            int ranks,
            long rows,
            long inner,
            long columns,
            DType dtype,
            boolean even) {
        this(algorithm, null, false, ranks, rows, inner, columns, dtype, even);
    }

    private static PredictRun scatter(
            Reduction reduction, int ranks, long rows, long inner, long columns, DType dtype) {
        return new PredictRun(null, reduction, false, ranks, rows, inner, columns, dtype, true);
    }

    private static PredictRun all(
            Reduction reduction, int ranks, long rows, long inner, long columns, DType dtype) {
        return new PredictRun(null, reduction, true, ranks, rows, inner, columns, dtype, true);
    }

    /** Products that are summed: K is small, so that there is much to sum beside them. */
    static List<PredictRun> summed() {
        return List.of(
                scatter(Reduction.CHAIN, 2, 4096, 64, 512, FP32),
                scatter(Reduction.MESH_PUSH, 2, 4096, 64, 512, FP32),
                scatter(Reduction.DIRECT, 2, 4096, 64, 512, FP32),
                all(Reduction.CHAIN, 2, 2048, 64, 512, FP32),
                all(Reduction.MESH_PUSH, 2, 2048, 64, 512, FP32),
                all(Reduction.DIRECT, 2, 2048, 64, 512, FP32),
                all(Reduction.CHAIN, 2, 2048, 64, 1024, BF16),
                scatter(Reduction.MESH_PUSH, 2, 2048, 64, 1024, BF16),
                scatter(Reduction.CHAIN, 3, 2048, 96, 512, FP32),
                all(Reduction.MESH_PUSH, 3, 2048, 96, 512, FP32),
                scatter(Reduction.DIRECT, 3, 2048, 96, 512, FP32),
                all(Reduction.CHAIN, 4, 2048, 128, 256, FP32),
                scatter(Reduction.MESH_PUSH, 4, 2048, 128, 512, FP32),
                all(Reduction.DIRECT, 4, 2048, 128, 256, FP32));
    }

    static List<PredictRun> gathered() {
        return List.of(
                new PredictRun(Algorithm.RING, 2, 4096, 2048, 32, FP32, true),
                new PredictRun(Algorithm.RING, 3, 2048, 4096, 32, FP32, true),
                new PredictRun(Algorithm.RING, 4, 2048, 2048, 32, FP32, true),
                new PredictRun(Algorithm.RING, 8, 1024, 2048, 16, BF16, true),
                new PredictRun(Algorithm.BIDIRECTIONAL_RING, 2, 4096, 4096, 32, FP32, true),
                new PredictRun(Algorithm.BIDIRECTIONAL_RING, 3, 4096, 2048, 32, FP32, false),
                new PredictRun(Algorithm.BIDIRECTIONAL_RING, 4, 4096, 1024, 32, FP32, true),
                new PredictRun(Algorithm.BIDIRECTIONAL_RING, 8, 2048, 1024, 64, FP32, true),
                new PredictRun(Algorithm.MESH_PUSH, 2, 8192, 1024, 32, FP32, true),
                new PredictRun(Algorithm.MESH_PUSH, 3, 4096, 2048, 32, FP32, true),
                new PredictRun(Algorithm.MESH_PUSH, 4, 2048, 4096, 32, FP32, true),
                new PredictRun(Algorithm.MESH_PUSH, 8, 2048, 1024, 16, BF16, true),
                new PredictRun(Algorithm.MESH_PULL, 2, 2048, 2048, 32, FP32, true),
                new PredictRun(Algorithm.MESH_PULL, 3, 2048, 4096, 32, FP32, false),
                new PredictRun(Algorithm.MESH_PULL, 4, 4096, 1024, 16, BF16, true),
                new PredictRun(Algorithm.MESH_PULL, 8, 1024, 4096, 48, FP32, true),
                new PredictRun(Algorithm.DIRECT, 2, 4096, 2048, 32, FP32, true),
                new PredictRun(Algorithm.DIRECT, 3, 2048, 2048, 32, FP32, false),
                new PredictRun(Algorithm.DIRECT, 4, 2048, 4096, 32, FP32, true),
                new PredictRun(Algorithm.DIRECT, 8, 2048, 1024, 16, BF16, true));
    }

    Shards shards() {
        if (even) {
            return Shards.even(rows, ranks);
        }
        Shards parts = Shards.even(rows, ranks * (ranks + 1) / 2);
        long[] own = new long[ranks];
        int part = 0;
        for (int rank = 0; rank < ranks; rank++) {
            for (int i = 0; i <= rank; i++) {
                own[rank] += parts.rows(part++);
            }
        }
        return Shards.of(own);
    }

    /** Null where A is gathered. */
    Sums sums() {
        return reduction == null ? null : new Sums(parts(), all, reduction.order());
    }

    private Shards parts() {
        return Shards.even(inner, ranks);
    }

    RankOperators operators(Fabric fabric) {
        return reduction == null
                ? new RankOperators(fabric, shards(), inner, columns, dtype)
                : new RankOperators(fabric, shards(), parts(), columns, dtype);
    }

    Operator<Matrix> overlapped(RankOperators own) {
        return reduction == null ? own.prepare(algorithm, false) : own.prepare(reduction, all);
    }

    Operator<Matrix> sequential(RankOperators own) {
        return reduction == null
                ? own.prepare(Algorithm.SEQUENTIAL, false)
                : own.prepare(Reduction.SEQUENTIAL, all);
    }

    private String label() {
        if (reduction == null) {
            return algorithm.label();
        }
        return (all ? "all-reduce " : "reduce-scatter ") + reduction.label();
    }

    String describe() {
        return "%s, %d ranks, %d x %d x %d %s%s"
                .formatted(
                        label(), ranks, rows, inner, columns, dtype.label(), even ? "" : " uneven");
    }
}
