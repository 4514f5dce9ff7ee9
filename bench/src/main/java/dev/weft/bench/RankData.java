package dev.weft.bench;

import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/**
 * One rank's shard of A and the B that all ranks share, filled with numbers. Used by one thread of
 * the rank.
 */
record RankData(Fabric fabric, Shards shards, Matrix shard, Matrix b) {

    static RankData fill(
            Fabric fabric, Shards shards, long inner, long columns, DType dtype, Arena arena) {
        int rank = fabric.rank();
        Matrix shard = Matrix.allocate(arena, dtype, shards.rows(rank), inner);
        Matrix b = Matrix.allocate(arena, dtype, inner, columns);
        MadeUpData.fill(shard, MadeUpData.A, shards.firstRow(rank));
        MadeUpData.fill(b, MadeUpData.B);
        return new RankData(fabric, shards, shard, b);
    }

    /** An operator that finds its shard in place in every call from now on. Collective. */
    AllGatherMatmul prepare(Algorithm algorithm, boolean keepGathered) {
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric).a(shards, shard.dtype()).b(b).algorithm(algorithm);
        if (keepGathered) {
            builder.keepGathered();
        }
        AllGatherMatmul operator = builder.prepare();
        // One call for each of the two places that a shard may lie in.
        operator.call(shard);
        operator.call(shard);
        return operator;
    }
}
