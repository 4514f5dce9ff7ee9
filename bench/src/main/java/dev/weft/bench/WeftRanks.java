package dev.weft.bench;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.View;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * Weft's gather and product in one call, in fp32, on ranks that are threads of this JVM with one
 * compute worker each. Used by one thread.
 */
final class WeftRanks implements AutoCloseable {

    private final Arena arena = Arena.ofShared();
    private final Matrix a;
    private final Matrix b;
    private final Shards shards;
    private final World world;
    private final List<AllGatherMatmul> operators;

    WeftRanks(Shape shape, int ranks) {
        a = Matrix.allocate(arena, DType.FP32, shape.m(), shape.k());
        b = Matrix.allocate(arena, DType.FP32, shape.k(), shape.n());
        MadeUpData.fill(a, MadeUpData.A);
        MadeUpData.fill(b, MadeUpData.B);
        shards = Shards.even(shape.m(), ranks);
        world = World.threads(ranks);
        operators = world.call(this::prepare);
        check();
    }

    private AllGatherMatmul prepare(Fabric fabric) {
        AllGatherMatmul operator =
                AllGatherMatmul.on(fabric)
                        .a(shards, DType.FP32)
                        .b(b)
                        .output(DType.FP32)
                        .engine(WeftProduct.engine())
                        .computeWorkers(1)
                        .pinWorkers()
                        .prepare();
        Matrix shard = a.rows(shards.firstRow(fabric.rank()), shards.rows(fabric.rank()));
        // Both slots get the shard; from now on every call finds it in place.
        operator.call(shard);
        operator.call(shard);
        return operator;
    }

    private void check() {
        ProductCheck.require("Weft", a, b, product(0));
        for (int rank = 1; rank < operators.size(); rank++) {
            if (!product(rank).bitwiseEquals(product(0))) {
                throw new IllegalStateException(
                        "wrong product of Weft: rank " + rank + " has another one than rank 0");
            }
        }
    }

    private Matrix product(int rank) {
        return operators.get(rank).lastResult().product();
    }

    /** The weighted sum of the latest product. */
    double checksum() {
        return MadeUpData.checksum(product(0));
    }

    String algorithm() {
        return operators.getFirst().plan().name();
    }

    /** One call on all ranks; the time of the slowest. */
    long takeNs(View view) {
        return world
                .call(
                        fabric -> {
                            fabric.barrier();
                            return operators.get(fabric.rank()).callInPlace(view).elapsedNs();
                        })
                .stream()
                .mapToLong(Long::longValue)
                .max()
                .orElseThrow();
    }

    @Override
    public void close() {
        operators.forEach(AllGatherMatmul::close);
        world.close();
        arena.close();
    }
}
