package dev.weft.search;

/**
 * How a kernel cuts a product into tiles, as far as an arrival cut depends on it.
 *
 * @param rows rows of C that one worker computes at once
 * @param width columns of C in a full tile
 * @param narrowWidth columns of a narrow tile; equal to {@code width} if the kernel has only one
 * @param workers workers that run at the same time
 * @param kBlock columns of A that a kernel loads at once: slices are multiples of it
 */
public record TileGrid(int rows, int width, int narrowWidth, int workers, int kBlock) {

    public TileGrid {
        if (rows < 1
                || width < 1
                || narrowWidth < 1
                || narrowWidth > width
                || workers < 1
                || kBlock < 1) {
            throw new IllegalArgumentException(
                    "tiles of %d x %d or %d on %d workers, K in blocks of %d: expected at least one of each, narrow tiles not wider"
                            .formatted(rows, width, narrowWidth, workers, kBlock));
        }
    }
}
