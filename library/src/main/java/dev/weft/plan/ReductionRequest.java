package dev.weft.plan;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Placement;
import dev.weft.plan.step.Placement.OfRank;
import dev.weft.plan.step.Placement.Range;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * What a {@link ReductionWriter} is asked for: a product that is summed over ranks. Rank r has the
 * r-th part of K, which is columns of A and rows of B.
 *
 * @param chunks how the rows of C are cut; a source is the rank that gets the rows, or, if all
 *     ranks get them, the one that may sum them
 * @param kParts how K is spread over the ranks; a part may be empty
 * @param all whether every rank gets all rows of C, or only its own
 * @param order the order in which elements are to be summed; a writer that has only one may ignore
 *     it
 * @param hosts which ranks share memory
 */
public record ReductionRequest(
        Chunks chunks, Shards kParts, boolean all, Order order, Hosts hosts) {

    public ReductionRequest {
        Objects.requireNonNull(order, "order");
        if (kParts.ranks() != chunks.shards().ranks() || hosts.ranks() != kParts.ranks()) {
            throw new IllegalArgumentException(
                    "rows for %d ranks, K for %d and hosts of %d: expected as many of each"
                            .formatted(chunks.shards().ranks(), kParts.ranks(), hosts.ranks()));
        }
    }

    /** On one host. */
    public ReductionRequest(Chunks chunks, Shards kParts, boolean all, Order order) {
        this(chunks, kParts, all, order, Hosts.one(kParts.ranks()));
    }

    public int ranks() {
        return kParts.ranks();
    }

    /** Which rank gets which rows of C. */
    public Shards rows() {
        return chunks.shards();
    }

    /** The columns of C; of all products together if there are several Bs. */
    public long cols() {
        return chunks.cols();
    }

    /** All chunks, in the order of their rows. */
    public List<Chunk> allChunks() {
        List<Chunk> all = new ArrayList<>();
        for (int source = 0; source < ranks(); source++) {
            for (int index = 0; index < chunks.count(source); index++) {
                all.add(chunks.chunk(source, index));
            }
        }
        return all;
    }

    /** A chunk's rows of something that has all rows of C. */
    public Part rows(Part whole, Chunk chunk) {
        return whole.rows(rows().firstRow(chunk.source()) + chunk.firstRow(), chunk.rows());
    }

    /** A chunk's rows of the C of a rank that gets them. */
    public Part rowsOfC(Part c, Chunk chunk) {
        return all ? rows(c, chunk) : c.rows(chunk.firstRow(), chunk.rows());
    }

    /** What every rank has and gets, to write steps for. */
    public Placement placement() {
        Range allRows = new Range(0, rows().totalRows());
        List<OfRank> ofRanks = new ArrayList<>();
        for (int rank = 0; rank < ranks(); rank++) {
            Range k = kParts.range(rank);
            ofRanks.add(new OfRank(allRows, k, k, all ? allRows : rows().range(rank)));
        }
        return new Placement(rows().totalRows(), kParts.totalRows(), cols(), ofRanks);
    }
}
