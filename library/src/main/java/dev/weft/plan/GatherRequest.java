package dev.weft.plan;

import dev.weft.plan.step.Placement;
import dev.weft.plan.step.Placement.OfRank;
import dev.weft.plan.step.Placement.Range;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * What a {@link GatherWriter} is asked for: every rank multiplies all rows of A, of which it has a
 * shard, by its own B.
 *
 * @param chunks how the shards are cut
 * @param lanes communication workers per rank, as far as the algorithm can use them
 * @param hosts which ranks share memory
 * @param cols columns of C; of all products together if there are several Bs, 0 if A is only
 *     gathered
 * @param programs how many groups of workers multiply on a rank; program p has the p-th of equal
 *     parts of every shard's rows, and lanes of its own
 * @param options what is wanted beyond that; a {@link PlanBuilder} sees to it
 */
public record GatherRequest(
        Chunks chunks, int lanes, Hosts hosts, long cols, int programs, Set<Option> options) {

    /** The buffer of gathered A, if there is one: the first after those of the caller. */
    public static final int GATHERED = StepPlan.C + 1;

    /** What may be wanted of a gather. */
    public enum Option {
        /** All of gathered A is there at the end, own rows included. */
        KEPT,
        /** A rank's A lies in its place in gathered A. */
        A_IN_GATHERED,
        /** Gathered A has a group of columns for each shard, instead of a group of rows. */
        SIDE_BY_SIDE,
        /** Lanes count what they have brought to a rank, instead of a flag for each chunk. */
        COUNTED,
        /** Nothing is multiplied before everything has arrived. */
        GATHER_FIRST,
        /** Rows are multiplied shard by shard, own rows first, and not as they arrive. */
        BY_SOURCE
    }

    public GatherRequest {
        if (hosts.ranks() != chunks.shards().ranks()) {
            throw new IllegalArgumentException(
                    "hosts of %s ranks for %s shards: expected as many"
                            .formatted(hosts, chunks.shards().ranks()));
        }
        if (lanes < 1 || programs < 1 || cols < 0) {
            throw new IllegalArgumentException(
                    "%s lanes, %s programs and %s columns: expected one or more lanes and programs"
                            .formatted(lanes, programs, cols));
        }
        EnumSet<Option> all = EnumSet.noneOf(Option.class);
        all.addAll(options);
        options = Collections.unmodifiableSet(all);
    }

    /** One program, and nothing beyond the gather. */
    public GatherRequest(Chunks chunks, int lanes, Hosts hosts, long cols) {
        this(chunks, lanes, hosts, cols, 1, Set.of());
    }

    /** A copy that also wants these. */
    public GatherRequest with(Set<Option> more) {
        EnumSet<Option> all = EnumSet.noneOf(Option.class);
        all.addAll(options);
        all.addAll(more);
        return new GatherRequest(chunks, lanes, hosts, cols, programs, all);
    }

    /** A copy that only gathers. */
    GatherRequest withoutProduct() {
        return new GatherRequest(chunks, lanes, hosts, 0, programs, options);
    }

    /** A copy with other chunks and programs. */
    GatherRequest with(Chunks newChunks, int newPrograms) {
        return new GatherRequest(newChunks, lanes, hosts, cols, newPrograms, options);
    }

    public int ranks() {
        return chunks.shards().ranks();
    }

    public boolean wants(Option option) {
        return options.contains(option);
    }

    /** What every rank has and gets, to write steps for. */
    public Placement placement() {
        Shards rows = chunks.shards();
        Range allK = new Range(0, chunks.cols());
        Range allRows = new Range(0, rows.totalRows());
        List<OfRank> ofRanks = new ArrayList<>();
        for (int rank = 0; rank < rows.ranks(); rank++) {
            ofRanks.add(new OfRank(rows.range(rank), allK, allK, allRows));
        }
        return new Placement(rows.totalRows(), chunks.cols(), cols, ofRanks);
    }
}
