package dev.weft.cli.verify;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.plan.step.SumOrder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.stream.IntStream;

/** Products summed over K in a given order: what results of ranks that sum are compared with. */
public final class OrderedSums {

    private OrderedSums() {}

    /** Multiplies over a part of K. */
    @FunctionalInterface
    public interface Product {

        /**
         * @param before sums in fp32 that it continues, and may overwrite; null to start from zero
         */
        Matrix over(Matrix before, long firstK, long endK);
    }

    /** An order that users can ask for, in terms of the ranks' parts of K. */
    public static SumOrder of(Order order, Shards kParts) {
        if (order == Order.WHOLE) {
            return SumOrder.over(null, 0, kParts.totalRows());
        }
        List<SumOrder> parts =
                IntStream.range(0, kParts.ranks())
                        .filter(rank -> kParts.rows(rank) > 0)
                        .mapToObj(rank -> part(rank, kParts))
                        .map(part -> order == Order.BY_RANK ? part : new SumOrder.Rounded(part))
                        .toList();
        return SumOrder.added(parts);
    }

    private static SumOrder part(int rank, Shards kParts) {
        long first = kParts.firstRow(rank);
        return SumOrder.over(null, first, first + kParts.rows(rank));
    }

    /** The sums, in fp32. */
    public static Matrix in(SumOrder order, Product product, Arena arena) {
        if (order instanceof SumOrder.Added added) {
            Matrix sums = in(added.sums().getFirst(), product, arena);
            added.sums().stream().skip(1).forEach(next -> add(sums, in(next, product, arena)));
            return sums;
        }
        if (order instanceof SumOrder.Rounded rounded) {
            Matrix sums = in(rounded.sums(), product, arena);
            return sums.converted(arena, DType.BF16).converted(arena, DType.FP32);
        }
        SumOrder.Over over = (SumOrder.Over) order;
        Matrix before = over.before() == null ? null : in(over.before(), product, arena);
        return product.over(before, over.firstK(), over.endK());
    }

    private static void add(Matrix sums, Matrix addend) {
        for (long row = 0; row < sums.rows(); row++) {
            for (long col = 0; col < sums.cols(); col++) {
                sums.set(row, col, sums.get(row, col) + addend.get(row, col));
            }
        }
    }
}
