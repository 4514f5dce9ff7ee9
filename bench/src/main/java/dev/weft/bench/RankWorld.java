package dev.weft.bench;

import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.List;

/**
 * Ranks as threads with one operator, prepared once and called many times, so that several worlds
 * can take turns. A is sharded by rows, B by columns: all ranks together do the same work, whatever
 * their number. Used by one thread.
 */
final class RankWorld implements AutoCloseable {

    /** Calls made by prepare: one for each place that a shard may lie in. */
    private static final int SLOTS = 2;

    private final World world;
    private final List<AllGatherMatmul> operators;
    private final Matrix b;

    /**
     * @param cores shared evenly among the ranks
     * @param splits chunks per shard; 0 for Weft's own choice
     */
    RankWorld(int ranks, int cores, Algorithm algorithm, int splits, Matrix a, Matrix b) {
        this.b = b;
        this.world = World.threads(ranks);
        try {
            Shards shards = Shards.even(a.rows(), ranks);
            this.operators =
                    world.call(
                            fabric -> {
                                int rank = fabric.rank();
                                AllGatherMatmulBuilder builder =
                                        AllGatherMatmul.on(fabric)
                                                .a(shards, DType.FP32)
                                                .b(columns(b, rank, ranks))
                                                .algorithm(algorithm)
                                                .computeWorkers(Math.max(1, cores / ranks))
                                                .pinWorkers();
                                if (splits > 0) {
                                    builder.splitsPerRank(splits);
                                }
                                return prepared(builder, rowsOf(a, shards, rank));
                            });
        } catch (RuntimeException | Error e) {
            world.close();
            throw e;
        }
    }

    /** From now on every call finds its shard in place. */
    private static AllGatherMatmul prepared(AllGatherMatmulBuilder builder, Matrix shard) {
        AllGatherMatmul operator = builder.prepare();
        for (int slot = 0; slot < SLOTS; slot++) {
            operator.call(shard);
        }
        return operator;
    }

    private static Matrix rowsOf(Matrix a, Shards shards, int rank) {
        return a.rows(shards.firstRow(rank), shards.rows(rank));
    }

    /** A rank's columns; the last rank also has what does not come out even. */
    private static Matrix columns(Matrix matrix, int rank, int ranks) {
        long first = matrix.cols() / ranks * rank;
        long next = rank == ranks - 1 ? matrix.cols() : matrix.cols() / ranks * (rank + 1);
        return matrix.block(0, matrix.rows(), first, next - first);
    }

    /** One call of all ranks; the time of the slowest. */
    long callNs() {
        return world
                .call(
                        fabric -> {
                            fabric.barrier();
                            return operators
                                    .get(fabric.rank())
                                    .callInPlace(View.PIPELINED)
                                    .elapsedNs();
                        })
                .stream()
                .mapToLong(Long::longValue)
                .max()
                .orElseThrow();
    }

    /** What the only rank of a world of one computed. */
    Matrix product() {
        return operators.getFirst().lastResult().product();
    }

    /** Chunks of the first rank's shard. */
    int chunks() {
        return operators.getFirst().plan().chunks().count(0);
    }

    /** Ends the bench unless the ranks' columns are, bit for bit, those of {@code product}. */
    void check(Matrix product) {
        for (int rank = 0; rank < operators.size(); rank++) {
            Matrix mine = operators.get(rank).lastResult().product();
            if (!mine.bitwiseEquals(columns(product, rank, operators.size()))) {
                throw new IllegalStateException(
                        "rank "
                                + rank
                                + " of "
                                + operators.size()
                                + " with "
                                + operators.get(rank).plan().name()
                                + ", B "
                                + b.describe()
                                + ": another product than that of one rank");
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
