package dev.weft.bench.cpu;

import dev.weft.bench.measure.Operands;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Epilogue;
import dev.weft.op.MatmulAllReduce;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Operator;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;

/**
 * Weft as a user calls it: ranks that are threads of this JVM, each with an operator that is
 * prepared once and finds its input in place in every call. The product is fp32, whatever the
 * inputs are. Used by one thread.
 */
final class WeftRanks implements AutoCloseable {

    /** Calls use two places for A in turn. */
    private static final int PLACES = 2;

    private final World world;
    private final List<Operator<Matrix>> operators;
    private final BiFunction<Matrix, Integer, Matrix> parts;
    private final BiFunction<Matrix, Integer, Matrix> inputs;

    private WeftRanks(
            int ranks,
            World.Function<Operator<Matrix>> prepared,
            BiFunction<Matrix, Integer, Matrix> inputs,
            BiFunction<Matrix, Integer, Matrix> parts) {
        this.inputs = inputs;
        this.parts = parts;
        this.world = World.threads(ranks);
        try {
            this.operators = world.call(prepared);
        } catch (RuntimeException | Error e) {
            world.close();
            throw e;
        }
    }

    /**
     * Ranks that gather and multiply; each has all of B.
     *
     * @param more what else the operators are told
     */
    static WeftRanks gathering(
            int ranks, Operands operands, UnaryOperator<AllGatherMatmulBuilder> more) {
        Matrix a = operands.a();
        Shards shards = Shards.even(a.rows(), ranks);
        return new WeftRanks(
                ranks,
                fabric -> {
                    AllGatherMatmulBuilder builder =
                            AllGatherMatmul.on(fabric)
                                    .a(shards, a.dtype())
                                    .b(operands.b())
                                    .output(DType.FP32)
                                    .pinWorkers();
                    return inPlace(more.apply(builder).prepare(), part(a, shards, fabric.rank()));
                },
                (matrix, rank) -> part(matrix, Shards.even(matrix.rows(), ranks), rank),
                (matrix, rank) -> matrix);
    }

    /**
     * Ranks with one worker each that multiply and reduce. Each has an even part of K.
     *
     * @param all whether every rank gets all rows, otherwise an even part of them
     */
    static WeftRanks reducing(int ranks, Operands operands, boolean all, Order order) {
        return reducing(ranks, operands, all, order, Epilogue.none());
    }

    /** The same with an epilogue. */
    static WeftRanks reducing(
            int ranks, Operands operands, boolean all, Order order, Epilogue epilogue) {
        Matrix a = operands.a();
        Shards rows = Shards.even(a.rows(), ranks);
        return new WeftRanks(
                ranks,
                fabric -> reducing(fabric, operands, all, order, epilogue),
                (matrix, rank) -> ofK(matrix, ranks, rank),
                (matrix, rank) -> all ? matrix : part(matrix, rows, rank));
    }

    /** This rank's operator of {@link #reducing(int, Operands, boolean, Order, Epilogue)}. */
    static Operator<Matrix> reducing(
            Fabric fabric, Operands operands, boolean all, Order order, Epilogue epilogue) {
        Matrix a = operands.a();
        int rank = fabric.rank();
        Shards rows = Shards.even(a.rows(), fabric.size());
        Shards kParts = Shards.even(a.cols(), fabric.size());
        Matrix own = ofK(a, fabric.size(), rank);
        var builder = all ? MatmulAllReduce.on(fabric) : MatmulReduceScatter.on(fabric);
        return inPlace(
                builder.a(rows, kParts, a.dtype())
                        .b(part(operands.b(), kParts, rank))
                        .output(DType.FP32)
                        .order(order)
                        .epilogue(epilogue)
                        .computeWorkers(1)
                        .prepare(),
                own);
    }

    /** From now on every call finds its input in place. */
    private static Operator<Matrix> inPlace(Operator<Matrix> operator, Matrix input) {
        // One call for each of the two places that it may lie in.
        for (int place = 0; place < PLACES; place++) {
            operator.nextShard().copyFrom(input);
            operator.callInPlace(View.PIPELINED);
        }
        return operator;
    }

    /** A rank's even part of K. */
    private static Matrix ofK(Matrix a, int ranks, int rank) {
        Shards kParts = Shards.even(a.cols(), ranks);
        return a.block(0, a.rows(), kParts.firstRow(rank), kParts.rows(rank));
    }

    private static Matrix part(Matrix matrix, Shards rows, int rank) {
        return matrix.rows(rows.firstRow(rank), rows.rows(rank));
    }

    int size() {
        return operators.size();
    }

    /** The name of the plan that they have chosen. */
    String plan() {
        return operators.getFirst().plan().name();
    }

    /** The first rank's latest product. */
    Matrix product() {
        return operators.getFirst().lastResult().product();
    }

    /** From now on calls of as many rows as {@code a} has, evenly spread, find these in place. */
    void place(Matrix a) {
        Shards rows = Shards.even(a.rows(), operators.size());
        world.run(
                fabric -> {
                    Operator<Matrix> own = operators.get(fabric.rank());
                    for (int place = 0; place < PLACES; place++) {
                        own.nextShard(rows).copyFrom(inputs.apply(a, fabric.rank()));
                        own.callInPlace(View.PIPELINED, rows);
                    }
                });
    }

    /** One call on all ranks; the time of the slowest. */
    long takeNs(View view) {
        return takeNs(view, operators.getFirst().mostRows());
    }

    /** One call of these rows on all ranks; the time of the slowest. */
    long takeNs(View view, Shards rows) {
        return world
                .call(
                        fabric -> {
                            Operator<Matrix> own = operators.get(fabric.rank());
                            fabric.barrier();
                            long startNs = System.nanoTime();
                            own.callInPlace(view, rows);
                            return System.nanoTime() - startNs;
                        })
                .stream()
                .mapToLong(Long::longValue)
                .max()
                .orElseThrow();
    }

    /** Ends the bench unless every rank's latest product is, bit for bit, its part of this one. */
    void requireBits(Matrix product) {
        forEachPart(
                product,
                (own, expected) -> {
                    if (!own.bitwiseEquals(expected)) {
                        throw new IllegalStateException(
                                "wrong product of Weft: one of %d ranks with %s has another one"
                                        .formatted(operators.size(), plan()));
                    }
                });
    }

    /** Every rank's latest product, with its part of {@code whole}. */
    void forEachPart(Matrix whole, BiConsumer<Matrix, Matrix> action) {
        for (int rank = 0; rank < operators.size(); rank++) {
            action.accept(operators.get(rank).lastResult().product(), parts.apply(whole, rank));
        }
    }

    @Override
    public void close() {
        try (world) {
            world.run(fabric -> operators.get(fabric.rank()).close());
        }
    }
}
