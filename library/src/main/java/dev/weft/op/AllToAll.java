package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.BitSet;

/**
 * Every rank sends each rank some of its rows: as many as it likes, in every call other ones.
 * Prepared once and called many times, on the CPU. It runs the plan of an all-gather, whose copies
 * leave out rows that are not for their destination. Collective, used by one thread at a time.
 */
public final class AllToAll implements AutoCloseable {

    private final AllGatherMatmul operator;
    private final AllGather<Matrix> counts;
    private final Arena arena = Arena.ofShared();
    private final Matrix own;
    private final BitSet[] wanted;

    /** By source and destination: rows. */
    private final long[][] rows;

    private Matrix gathered;
    private Shards shards;

    private AllToAll(
            AllGatherMatmul operator, AllGather<Matrix> counts, BitSet[] wanted, int ranks) {
        this.operator = operator;
        this.counts = counts;
        this.wanted = wanted;
        this.own = Matrix.allocate(arena, DType.FP32, 1, ranks);
        this.rows = new long[ranks][ranks];
    }

    /**
     * @param most the most rows that each rank sends in a call, to all ranks together
     */
    public static AllToAll rows(Fabric fabric, Shards most, long cols, DType dtype) {
        int ranks = fabric.size();
        BitSet[] wanted = new BitSet[ranks];
        Arrays.setAll(wanted, r -> new BitSet(Math.toIntExact(most.totalRows())));
        long[] one = new long[ranks];
        Arrays.fill(one, 1);
        AllGather<Matrix> counts =
                AllGatherMatmulBuilder.gatherOfFew(fabric, Shards.of(one), ranks);
        try {
            AllGatherMatmulBuilder builder =
                    AllGatherMatmul.on(fabric)
                            .wanted(wanted)
                            .a(most, dtype)
                            .fromOwners()
                            .computeWorkers(1)
                            .gatherOnly(cols, false);
            return new AllToAll(builder.prepare(), counts, wanted, ranks);
        } catch (RuntimeException | Error e) {
            counts.close();
            throw e;
        }
    }

    /**
     * Sends and receives. What has come is valid until the next call starts.
     *
     * @param sent this rank's rows: first those for rank 0, then those for rank 1, and so on
     * @param to how many rows go to each rank
     * @throws IllegalArgumentException on all ranks, if one sends more rows than it was prepared
     *     for; nothing has been sent
     */
    public void call(Matrix sent, Shards to) {
        int ranks = rows.length;
        if (to.ranks() != ranks || sent.rows() != to.totalRows()) {
            throw new IllegalArgumentException(
                    "rows %s to %d ranks out of %s: expected %d numbers whose sum is its rows"
                            .formatted(to, to.ranks(), sent.describe(), ranks));
        }
        gathered = null;
        for (int r = 0; r < ranks; r++) {
            own.data().setAtIndex(ValueLayout.JAVA_INT, r, Math.toIntExact(to.rows(r)));
        }
        Matrix all = counts.call(own);
        long[] totals = new long[ranks];
        for (int source = 0; source < ranks; source++) {
            for (int r = 0; r < ranks; r++) {
                rows[source][r] =
                        all.data().getAtIndex(ValueLayout.JAVA_INT, (long) source * ranks + r);
                totals[source] += rows[source][r];
            }
        }
        shards = Shards.of(totals);
        for (BitSet ofRank : wanted) {
            ofRank.clear();
        }
        for (int source = 0; source < ranks; source++) {
            for (int r = 0; r < ranks; r++) {
                int first = Math.toIntExact(shards.firstRow(source) + before(source, r));
                wanted[r].set(first, first + (int) rows[source][r]);
            }
        }
        gathered = operator.call(sent, shards).gathered().orElseThrow();
    }

    /** Rows that a source sends to the ranks before {@code rank}. */
    private long before(int source, int rank) {
        return Arrays.stream(rows[source], 0, rank).sum();
    }

    /** What has come from a rank in the latest call. */
    public Matrix from(int source) {
        if (gathered == null) {
            throw new IllegalStateException("no call has been made yet");
        }
        int rank = operator.rank();
        return gathered.rows(shards.firstRow(source) + before(source, rank), rows[source][rank]);
    }

    /** What every call does on every rank: an all-gather. */
    public Plan plan() {
        return operator.plan();
    }

    @Override
    public void close() {
        try (arena;
                counts) {
            operator.close();
        }
    }
}
