package dev.weft.plan;

import dev.weft.plan.step.Placement;
import dev.weft.plan.step.Placement.OfRank;
import dev.weft.plan.step.Placement.Range;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** What Weft's collectives ask for, as placements. */
final class Placements {

    private Placements() {}

    /** Every rank has some rows of A and all of k, and gets all rows of C. */
    static Placement gather(Shards rows, long k, long cols) {
        Range allK = new Range(0, k);
        Range allRows = new Range(0, rows.totalRows());
        return placement(rows, k, cols, rank -> new OfRank(range(rows, rank), allK, allK, allRows));
    }

    /**
     * Every rank has all rows of A and some of k, and gets its rows of C.
     *
     * @param all whether every rank gets all rows instead
     */
    static Placement reduce(Shards rows, Shards inner, long cols, boolean all) {
        Range allRows = new Range(0, rows.totalRows());
        return placement(
                rows,
                inner.totalRows(),
                cols,
                rank -> {
                    Range k = range(inner, rank);
                    return new OfRank(allRows, k, k, all ? allRows : range(rows, rank));
                });
    }

    private static Placement placement(Shards rows, long k, long cols, IntFunction<OfRank> ofRank) {
        List<OfRank> ranks = IntStream.range(0, rows.ranks()).mapToObj(ofRank).toList();
        return new Placement(rows.totalRows(), k, cols, ranks);
    }

    private static Range range(Shards shards, int rank) {
        return new Range(shards.firstRow(rank), shards.rows(rank));
    }
}
