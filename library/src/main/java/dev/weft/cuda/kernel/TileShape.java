package dev.weft.cuda.kernel;

import dev.weft.search.TileGrid;

/**
 * How a kernel cuts the product.
 *
 * @param rows of C that one worker (a thread block, or a cluster of them) computes at once
 * @param width columns of C in a full tile
 * @param middleWidth columns between full and narrow; the full width if the kernel has none
 * @param narrowWidth columns of a narrow tile; the full width if the kernel has only one
 * @param workers that run at the same time
 */
public record TileShape(int rows, int width, int middleWidth, int narrowWidth, int workers) {

    /** Columns of A that a kernel loads at once: the unit in which gates are placed along K. */
    public static final int K_BLOCK = 64;

    public TileShape {
        if (rows < 1 || width < 1 || narrowWidth < 1 || narrowWidth > width || workers < 1) {
            throw new IllegalArgumentException(
                    ("tiles of %s x %s or %s on %s workers: expected at least one of each,"
                                    + " narrow tiles not wider")
                            .formatted(rows, width, narrowWidth, workers));
        }
    }

    /** Of a kernel that has three widths, or one. */
    public TileShape(int rows, int width, int narrowWidth, int workers) {
        this(rows, width, narrowWidth < width ? width * 3 / 4 : width, narrowWidth, workers);
    }

    /** For the search for a cut. */
    public TileGrid grid() {
        return new TileGrid(rows, width, narrowWidth, workers, K_BLOCK);
    }

    /** Tiles side by side in {@code n} columns. */
    public int across(long n, int tileWidth) {
        return Math.toIntExact(Math.ceilDiv(n, tileWidth));
    }
}
