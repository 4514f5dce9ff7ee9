package dev.weft.compat;

import dev.weft.tensor.DType;

/** Where FGCC keeps the ring fragments of A. */
public enum FgccPath {
    /** In the on-chip double buffer only; slices of a rank's rows are numbered l * C + c. */
    SBUF,
    /** In two [m, K] buffers in main memory; slices of a rank's rows are numbered c * L + l. */
    HBM;

    /** The source's tiles: rows of A and of B at most, and columns of B. */
    private static final long TILE_ROWS = 128;

    private static final long TILE_COLS = 512;

    /** Where B does not fit, its blocks are so many tiles of K deep, times the bytes of a type. */
    private static final int K_TILES_TIMES_BYTES = 16;

    /**
     * The source's rule. Two thirds of the chip may hold B, double-buffered: all of it, or else a
     * block of it. SBUF is taken where the rest holds twice the slice of one program and channel.
     * Sizes count whole tiles.
     *
     * @param slices L x C, by which the m rows of one rank are divided
     * @param k columns of A and rows of B
     * @param n columns of B on this rank
     */
    static FgccPath choose(
            FgccConfig config,
            int slices,
            long m,
            long k,
            long n,
            DType aType,
            DType bType,
            boolean forceHbm) {
        if (forceHbm) {
            return HBM;
        }
        double rows = inTiles(Math.ceilDiv(m, slices), TILE_ROWS);
        double sliceBytes = rows * inTiles(k, TILE_ROWS) * aType.bytes();
        double left = config.onChipBytes() - 2 * rhsBlockBytes(config, k, n, bType);
        return 2 * sliceBytes <= left ? SBUF : HBM;
    }

    /** Bytes of B that are on chip at a time. In doubles, which cannot overflow. */
    private static double rhsBlockBytes(FgccConfig config, long k, long n, DType bType) {
        double limit = config.onChipBytes() / 3 * 2;
        double rows = inTiles(k, TILE_ROWS);
        double bytes = rows * inTiles(n, TILE_COLS) * bType.bytes();
        if (2 * bytes <= limit) {
            return bytes;
        }
        double tileCols = Math.min(n, TILE_COLS);
        double colTiles = Math.floor(limit / (rows * tileCols * bType.bytes()));
        double blockCols = tileCols * Math.clamp(colTiles, 1, Math.ceil(n / tileCols));
        double rowTiles = K_TILES_TIMES_BYTES / bType.bytes();
        return Math.min(rows, Math.min(k, TILE_ROWS) * rowTiles) * blockCols * bType.bytes();
    }

    /** The size of the tiles that cover {@code size}; a single one is as small as it. */
    private static double inTiles(long size, long tile) {
        return size <= tile ? size : Math.ceil((double) size / tile) * tile;
    }
}
