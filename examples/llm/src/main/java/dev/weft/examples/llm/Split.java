package dev.weft.examples.llm;

import dev.weft.plan.Shards;
import java.util.List;

/**
 * Which part of each layer a rank has: heads of queries with the keys that they need, hidden
 * columns, and tokens of the vocabulary. Parts need not be equal, and may be empty.
 *
 * @param heads by rank, the columns of its heads of queries
 * @param hidden by rank, its hidden columns
 * @param vocabulary by rank, its tokens
 */
record Split(Shape shape, Shards heads, Shards hidden, Shards vocabulary) {

    static Split of(Model model, int ranks) {
        return of(model, ranks, 1);
    }

    /**
     * @param unit sums over ranks are cut at multiples of this
     */
    static Split of(Model model, int ranks, int unit) {
        Shape shape = model.shape();
        List<Tensor> outs = model.layers().stream().map(Model.Layer::attentionOut).toList();
        List<Tensor> downs = model.layers().stream().map(Model.Layer::down).toList();
        return new Split(
                shape,
                even(shape.width(), quantum(outs, shape.headWidth(), unit), ranks),
                even(shape.hidden(), quantum(downs, 1, unit), ranks),
                Shards.even(shape.vocabulary(), ranks));
    }

    /** A multiple of both units and of the elements of a block in all layers. */
    private static int quantum(List<Tensor> tensors, int one, int other) {
        int quantum = multiple(one, other);
        for (Tensor tensor : tensors) {
            quantum = multiple(quantum, tensor.quantum());
        }
        return quantum;
    }

    /** The smallest of both. */
    private static int multiple(int one, int other) {
        int multiple = one;
        while (multiple % other != 0) {
            multiple += one;
        }
        return multiple;
    }

    private static Shards even(int columns, int quantum, int ranks) {
        if (columns % quantum != 0) {
            throw new IllegalArgumentException(
                    "%d columns: expected a multiple of %d".formatted(columns, quantum));
        }
        Shards units = Shards.even(columns / quantum, ranks);
        long[] all = new long[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            all[rank] = units.rows(rank) * quantum;
        }
        return Shards.of(all);
    }

    int firstHead(int rank) {
        return (int) heads.firstRow(rank) / shape.headWidth();
    }

    int headCount(int rank) {
        return (int) heads.rows(rank) / shape.headWidth();
    }

    /** Heads of keys may be needed by two ranks: both have them. */
    int firstKey(int rank) {
        return Math.min(firstHead(rank) / shape.sharers(), shape.keyHeads() - 1);
    }

    /** At least one, so that a rank without heads of queries has a product. */
    int keyCount(int rank) {
        int last = Math.max(firstHead(rank), firstHead(rank) + headCount(rank) - 1);
        int end = Math.min(last / shape.sharers(), shape.keyHeads() - 1) + 1;
        return Math.max(1, end - firstKey(rank));
    }
}
