package dev.weft.bench;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.View;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/**
 * Weft's product alone: the operator as a user calls it, on one rank, with B prepared. The product
 * is fp32, whatever the inputs are. Used by one thread.
 */
final class WeftProduct implements AutoCloseable {

    private final Arena arena = Arena.ofShared();
    private final World world;
    private final AllGatherMatmul operator;
    private final Matrix a;
    private final Matrix b;

    WeftProduct(Shape shape, DType type, int threads) {
        a = Matrix.allocate(arena, type, shape.m(), shape.k());
        b = Matrix.allocate(arena, type, shape.k(), shape.n());
        MadeUpData.fill(a, MadeUpData.A);
        MadeUpData.fill(b, MadeUpData.B);
        world = World.threads(1);
        operator = world.call(fabric -> prepare(fabric, threads)).getFirst();
        // Both slots get the shard; from now on every call finds it in place.
        operator.call(a);
        ProductCheck.require("Weft " + type.label(), a, b, operator.call(a).product());
    }

    private AllGatherMatmul prepare(Fabric fabric, int threads) {
        return AllGatherMatmul.on(fabric)
                .a(Shards.even(a.rows(), 1), a.dtype())
                .b(b)
                .output(DType.FP32)
                .engine(engine())
                .computeWorkers(threads)
                .pinWorkers()
                .prepare();
    }

    /** Weft's own: a bound library would be compared with itself. */
    static Gemm engine() {
        return Gemms.byName(FmaPeak.available() ? "vector" : "scalar");
    }

    Matrix a() {
        return a;
    }

    Matrix b() {
        return b;
    }

    /** The latest product. */
    Matrix product() {
        return operator.lastResult().product();
    }

    long takeNs() {
        long startNs = System.nanoTime();
        operator.callInPlace(View.PIPELINED);
        return System.nanoTime() - startNs;
    }

    @Override
    public void close() {
        operator.close();
        world.close();
        arena.close();
    }
}
