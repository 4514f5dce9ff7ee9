package dev.weft.bench.cpu;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.List;

/**
 * A call whose time is predicted and then measured. Immutable; any thread may call it.
 *
 * @param rows M of the product
 * @param inner K of the product
 * @param columns N of the product: few, so that there is much to gather beside it
 * @param even whether the shards are; otherwise each rank has as many times the first one's rows as
 *     its number
 */
record PredictRun(
        Algorithm algorithm,
        int ranks,
        long rows,
        long inner,
        long columns,
        DType dtype,
        boolean even) {

    private static final DType FP32 = DType.FP32;
    private static final DType BF16 = DType.BF16;

    static List<PredictRun> all() {
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

    String describe() {
        return "%s, %d ranks, %d x %d x %d %s%s"
                .formatted(
                        algorithm.label(),
                        ranks,
                        rows,
                        inner,
                        columns,
                        dtype.label(),
                        even ? "" : " uneven");
    }
}
