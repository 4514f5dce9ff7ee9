package dev.weft.plan;

import java.util.List;

/**
 * How the chunks that a rank gets on its only lane are cut further, by that rank alone: into blocks
 * of rows, and a block into slices of columns. The product of a block goes on slice by slice as
 * they come, so that little is left to multiply after the last byte.
 *
 * @param chunks for each chunk, in the order of the lane, its blocks from the first row on
 */
public record ArrivalCut(List<List<Block>> chunks) {

    /**
     * Rows of a chunk that are multiplied together.
     *
     * @param cols of each slice, in the order in which they travel; a single one is no slice
     * @param narrow whether the product takes narrow tiles, of which more run at once
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
