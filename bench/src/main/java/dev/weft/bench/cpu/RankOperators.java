package dev.weft.bench.cpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.MadeUpData;
import dev.weft.bench.measure.Resources;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.MatmulAllReduce;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;

/**
 * One rank's operators for one problem, which take turns, a call each, as {@link Interleaved} has
 * it. Collective: every rank has the same operators in the same order, and all find the same. Used
 * by one thread of each rank.
 */
final class RankOperators implements AutoCloseable {

    private final Resources opened = new Resources();
    private final Fabric fabric;
    private final Shards shards;
    private final Shards parts;
    private final Matrix shard;
    private final Matrix b;

    /** One that takes turns, with what it does then. */
    record Side(Operator<Matrix> operator, View view) {}

    RankOperators(Fabric fabric, Shards shards, long inner, long columns, DType dtype) {
        this(fabric, shards, null, shards.rows(fabric.rank()), inner, columns, dtype);
    }

    /** Of products that are summed, where every rank has a part of K. */
    RankOperators(Fabric fabric, Shards shards, Shards parts, long columns, DType dtype) {
        this(fabric, shards, parts, shards.totalRows(), parts.rows(fabric.rank()), columns, dtype);
    }

    private RankOperators(
            Fabric fabric,
            Shards shards,
            Shards parts,
            long rows,
            long inner,
            long columns,
            DType dtype) {
        this.fabric = fabric;
        this.shards = shards;
        this.parts = parts;
        Arena arena = opened.add(Arena.ofShared());
        shard = Matrix.allocate(arena, dtype, rows, inner);
        b = Matrix.allocate(arena, dtype, inner, columns);
        MadeUpData.fill(shard, MadeUpData.A, shards.firstRow(fabric.rank()));
        MadeUpData.fill(b, MadeUpData.B);
    }

    /** An operator that sums, and finds its A in place in every call from now on. */
    Operator<Matrix> prepare(Reduction reduction, boolean all) {
        var builder = all ? MatmulAllReduce.on(fabric) : MatmulReduceScatter.on(fabric);
        Operator<Matrix> operator =
                builder.a(shards, parts, shard.dtype())
                        .b(b)
                        .output(shard.dtype())
                        .algorithm(reduction)
                        .prepare();
        opened.add(operator);
        return inPlace(operator);
    }

    /** An operator that finds its shard in place in every call from now on. */
    AllGatherMatmul prepare(Algorithm algorithm, boolean keepGathered) {
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric)
                        .a(shards, shard.dtype())
                        .b(b)
                        .output(shard.dtype())
                        .algorithm(algorithm);
        if (keepGathered) {
            builder.keepGathered();
        }
        AllGatherMatmul operator = opened.add(builder.prepare());
        inPlace(operator);
        return operator;
    }

    private Operator<Matrix> inPlace(Operator<Matrix> operator) {
        // One call for each of the two places that a shard may lie in.
        for (int place = 0; place < 2; place++) {
            operator.nextShard().copyFrom(shard);
            operator.callInPlace(View.PIPELINED);
        }
        return operator;
    }

    /** What the slowest rank took, by side and round. */
    Interleaved.Outcome measure(Interleaved.Effort effort, List<Side> sides)
            throws IOException, InterruptedException {
        // The first rank's clock for all: they must agree on how many rounds there are.
        return new Interleaved(effort, () -> fabric.exchange(System.nanoTime())[0])
                .measure(
                        sides.stream()
                                .<Interleaved.Turn>map(side -> () -> slowestNs(side))
                                .toList());
    }

    /** One more turn of each side, in order. */
    long[] round(List<Side> sides) {
        return sides.stream().mapToLong(this::slowestNs).toArray();
    }

    private long slowestNs(Side side) {
        fabric.barrier();
        long own = side.operator().callInPlace(side.view()).elapsedNs();
        return Arrays.stream(fabric.exchange(own)).max().orElseThrow();
    }

    @Override
    public void close() {
        opened.close();
    }
}
