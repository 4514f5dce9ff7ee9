package dev.weft.plan;

import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * Checks that every row of every shard is consumed exactly once, by blocks that name the chunks
 * that cover them: own rows first and the others as the lanes deliver, unless the gather comes
 * first.
 */
record ConsumptionCheck(RankPlan plan, Chunks chunks) {

    static void check(List<RankPlan> plans) {
        for (RankPlan plan : plans) {
            ConsumptionCheck consumption = new ConsumptionCheck(plan, plan.chunks());
            plan.consumption().forEach(consumption::checkBlock);
            consumption.checkEachRowOnce();
            if (!plan.pacing().gatherFirst()) {
                consumption.checkOwnFirst();
                consumption.checkDeliveryOrder();
            }
        }
    }

    private void checkBlock(RowBlock block) {
        int source = block.source();
        if (source < 0 || source >= plan.ranks()) {
            throw fault(block, "is a block of no rank of the group");
        }
        long rowsLeft = chunks.shards().rows(source) - block.firstRow();
        if (block.firstRow() < 0 || block.rows() < 1 || block.rows() > rowsLeft) {
            throw fault(block, "is not within the shard");
        }
        if (block.program() < 0) {
            throw fault(block, "is of program " + block.program());
        }
        long end = block.firstRow() + block.rows();
        long chunkRows = chunks.chunkRows(source);
        long first = block.firstRow() / chunkRows * chunks.colChunks();
        long count = Math.ceilDiv(end, chunkRows) * chunks.colChunks() - first;
        if (block.firstChunk() != first || block.chunkCount() != count) {
            throw fault(block, "is covered by " + count + " chunks from chunk " + first + " on");
        }
    }

    private void checkEachRowOnce() {
        List<RowBlock> sorted = new ArrayList<>(plan.consumption());
        sorted.sort(naturalOrder());
        long[] consumed = new long[plan.ranks()];
        for (RowBlock block : sorted) {
            if (block.firstRow() < consumed[block.source()]) {
                throw fault(block, "is consumed more than once");
            }
            if (block.firstRow() > consumed[block.source()]) {
                throw notConsumed(block.source(), consumed[block.source()]);
            }
            consumed[block.source()] += block.rows();
        }
        for (int source = 0; source < consumed.length; source++) {
            if (consumed[source] < chunks.shards().rows(source)) {
                throw notConsumed(source, consumed[source]);
            }
        }
    }

    private void checkOwnFirst() {
        boolean remote = false;
        for (RowBlock block : plan.consumption()) {
            boolean own = block.source() == plan.rank();
            if (own && remote) {
                throw fault(block, "is the rank's own and comes after remote rows");
            }
            remote = !own;
        }
    }

    private void checkDeliveryOrder() {
        int[] laneOfTag = new int[chunks.total()];
        int[] positionOfTag = new int[chunks.total()];
        Arrays.fill(laneOfTag, -1);
        for (int lane = 0; lane < plan.arrivals().size(); lane++) {
            int position = 0;
            for (Transfer transfer : plan.arrivals().get(lane).transfers()) {
                laneOfTag[transfer.tag()] = lane;
                positionOfTag[transfer.tag()] = position++;
            }
        }
        int[] reached = new int[plan.arrivals().size()];
        int[] complete = new int[plan.arrivals().size()];
        for (RowBlock block : plan.consumption()) {
            checkNoOvertaking(block, laneOfTag, positionOfTag, complete, reached);
        }
    }

    /**
     * In each lane that brings a part of a block, the last of its chunks there counts: the block
     * cannot be consumed sooner.
     */
    private void checkNoOvertaking(
            RowBlock block, int[] laneOf, int[] positionOf, int[] complete, int[] reached) {
        int first = chunks.tag(block.source(), block.firstChunk());
        int end = first + block.chunkCount();
        for (int tag = first; tag < end; tag++) {
            if (laneOf[tag] >= 0) {
                complete[laneOf[tag]] = 0;
            }
        }
        for (int tag = first; tag < end; tag++) {
            if (laneOf[tag] >= 0) {
                complete[laneOf[tag]] = Math.max(complete[laneOf[tag]], positionOf[tag]);
            }
        }
        for (int tag = first; tag < end; tag++) {
            int lane = laneOf[tag];
            if (lane >= 0 && complete[lane] < reached[lane]) {
                throw fault(block, "is consumed after rows that its lane delivers later");
            }
        }
        for (int tag = first; tag < end; tag++) {
            if (laneOf[tag] >= 0) {
                reached[laneOf[tag]] = complete[laneOf[tag]];
            }
        }
    }

    private static Comparator<RowBlock> naturalOrder() {
        return Comparator.comparingInt(RowBlock::source).thenComparingLong(RowBlock::firstRow);
    }

    private PlanException notConsumed(int source, long row) {
        int chunk = Math.toIntExact(row / chunks.chunkRows(source)) * chunks.colChunks();
        return new PlanException(
                plan.rank(), source, chunk, "row " + row + " of the shard is never consumed");
    }

    private PlanException fault(RowBlock block, String fault) {
        String rows = "block of " + block.rows() + " rows from row " + block.firstRow() + " on ";
        return new PlanException(plan.rank(), block, rows + fault);
    }
}
