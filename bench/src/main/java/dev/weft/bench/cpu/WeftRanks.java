package dev.weft.bench.cpu;

import dev.weft.bench.measure.Operands;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Operator.View;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Weft as a user calls it: ranks that are threads of this JVM, each with an operator that is
 * prepared once and finds its shard in place in every call. The product is fp32, whatever the
 * inputs are. Used by one thread.
 */
final class WeftRanks implements AutoCloseable {

    private final World world;
    private final boolean sharded;
    private final List<AllGatherMatmul> operators;

    /**
     * @param sharded whether B is sharded by columns, so that all ranks together do the same work,
     *     whatever their number; otherwise every rank has all of B
     * @param more what else the operators are told
     */
    WeftRanks(
            int ranks,
            Operands operands,
            boolean sharded,
            UnaryOperator<AllGatherMatmulBuilder> more) {
        this.sharded = sharded;
        this.world = World.threads(ranks);
        try {
            this.operators = world.call(fabric -> prepare(fabric, operands, more));
        } catch (RuntimeException | Error e) {
            world.close();
            throw e;
        }
    }

    private AllGatherMatmul prepare(
            Fabric fabric, Operands operands, UnaryOperator<AllGatherMatmulBuilder> more) {
        Matrix a = operands.a();
        int rank = fabric.rank();
        Shards shards = Shards.even(a.rows(), fabric.size());
        AllGatherMatmul operator =
                more.apply(
                                AllGatherMatmul.on(fabric)
                                        .a(shards, a.dtype())
                                        .b(columns(operands.b(), rank, fabric.size()))
                                        .output(DType.FP32)
                                        .pinWorkers())
                        .prepare();
        Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
        // One call for each of the two places that a shard may lie in.
        operator.call(shard);
        operator.call(shard);
        return operator;
    }

    /** A rank's columns; the last rank also has what does not come out even. */
    private Matrix columns(Matrix matrix, int rank, int ranks) {
        if (!sharded) {
            return matrix;
        }
        long first = matrix.cols() / ranks * rank;
        long next = rank == ranks - 1 ? matrix.cols() : matrix.cols() / ranks * (rank + 1);
        return matrix.block(0, matrix.rows(), first, next - first);
    }

    /** The first rank's operator, whose plan is like the others'. */
    AllGatherMatmul operator() {
        return operators.getFirst();
    }

    /** The first rank's latest product. */
    Matrix product() {
        return operator().lastResult().product();
    }

    /** One call on all ranks; the time of the slowest. */
    long takeNs(View view) {
        return world
                .call(
                        fabric -> {
                            AllGatherMatmul own = operators.get(fabric.rank());
                            fabric.barrier();
                            long startNs = System.nanoTime();
                            own.callInPlace(view);
                            return System.nanoTime() - startNs;
                        })
                .stream()
                .mapToLong(Long::longValue)
                .max()
                .orElseThrow();
    }

    /** Ends the bench unless every rank's latest product is, bit for bit, its part of this one. */
    void requireBits(Matrix product) {
        for (int rank = 0; rank < operators.size(); rank++) {
            Matrix own = operators.get(rank).lastResult().product();
            if (!own.bitwiseEquals(columns(product, rank, operators.size()))) {
                throw new IllegalStateException(
                        "wrong product of Weft: rank %d of %d with %s has another one"
                                .formatted(rank, operators.size(), operator().plan().name()));
            }
        }
    }

    @Override
    public void close() {
        try (world) {
            world.run(fabric -> operators.get(fabric.rank()).close());
        }
    }
}
