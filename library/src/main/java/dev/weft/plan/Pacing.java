package dev.weft.plan;

import java.util.List;

/**
 * How products keep pace with arrivals.
 *
 * @param gatherFirst whether nothing is multiplied before everything has arrived
 * @param anyGather whether a transport's own all-gather may replace the lanes; only with {@code
 *     gatherFirst}
 * @param stepRows how many rows of a block are worth multiplying while the rest of the block is on
 *     its way; 0 if a block is multiplied as a whole
 * @param arrivalCut how the rank cuts the chunks that it gets further; null if it does not
 */
public record Pacing(boolean gatherFirst, boolean anyGather, long stepRows, ArrivalCut arrivalCut) {

    /** Blocks are multiplied as a whole, each once it has arrived. */
    public static final Pacing BLOCK_BY_BLOCK = new Pacing(false, false, 0, null);

    /** Everything is gathered first, in any way, and then multiplied. */
    public static final Pacing GATHER_FIRST = new Pacing(true, true, 0, null);

    public Pacing {
        if (stepRows < 0 || anyGather && !gatherFirst) {
            throw new IllegalArgumentException(
                    "steps of %d rows, %s gather %s: expected none or more rows, and lanes where products do not wait"
                            .formatted(
                                    stepRows,
                                    anyGather ? "any" : "the lanes'",
                                    gatherFirst ? "first" : "at the same time"));
        }
    }

    /** Parts of a block, of at least {@code rows} rows, are multiplied while the rest arrives. */
    public static Pacing inSteps(long rows) {
        return new Pacing(false, false, rows, null);
    }

    /**
     * How a rank cuts the chunks that it gets on its only lane further, on its own: into blocks of
     * rows, and a block into slices of columns. The product of a block continues slice by slice as
     * they arrive, so that little is left to multiply after the last byte.
     *
     * @param chunks for each chunk, in the order of the lane, its blocks from the first row on
     */
    public record ArrivalCut(List<List<Block>> chunks) {

        /**
         * Rows of a chunk that are multiplied together.
         *
         * @param cols the columns of each slice, in the order in which they travel; a single entry
         *     means no slices
         * @param narrow whether the product uses narrow tiles, of which more run at once
         */
        public record Block(long rows, List<Long> cols, boolean narrow) {

            public Block {
                cols = List.copyOf(cols);
            }
        }

        public ArrivalCut {
            chunks = chunks.stream().map(List::copyOf).toList();
        }
    }
}
