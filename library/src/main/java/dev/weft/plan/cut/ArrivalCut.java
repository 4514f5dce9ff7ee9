package dev.weft.plan.cut;

import java.util.List;

/**
 * How a rank cuts the chunks that it gets on its only lane further, on its own: into blocks of
 * rows, and a block into slices of columns. The product of a block continues slice by slice as they
 * arrive, so that little is left to multiply after the last byte.
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
