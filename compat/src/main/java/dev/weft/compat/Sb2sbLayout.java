package dev.weft.compat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/** Where ranks' tensors go in the result of an {@link Sb2sb} gather, and what it refuses. */
public enum Sb2sbLayout {
    /** Side by side: [H, W] on each rank become [H, W x ranks]. */
    UNTILED,
    /** Side by side, in tiles of at most 128 rows that the programs of a rank share. */
    TILED,
    /** Below each other: [rows of rank r, K] become [all rows, K]. */
    ROWS;

    /** The most rows of a tile, and of a tensor that is gathered without tiles. */
    public static final int MAX_TILE_ROWS = 128;

    /** Refuses what the source refuses, with the actual numbers. */
    void check(long rows, long cols, DType dtype, int lnc, long onChipBytes) {
        require(
                (rows >= 1 || this == ROWS) && cols >= 1,
                "an input of [%s, %s]: expected at least one of each",
                rows,
                cols);
        if (this == UNTILED) {
            require(
                    rows <= MAX_TILE_ROWS,
                    "H is %s: expected at most %s rows; the tiled gather takes more",
                    rows,
                    MAX_TILE_ROWS);
            long bytes = Matrix.contiguousBytes(dtype, rows, cols);
            require(
                    bytes <= onChipBytes,
                    "the input [%s, %s] %s is %s bytes: expected at most the on-chip capacity of"
                            + " %s; the tiled gather takes more",
                    rows,
                    cols,
                    dtype.label(),
                    bytes,
                    onChipBytes);
        } else if (this == TILED) {
            long tileRows = tileRows(rows);
            require(
                    rows % tileRows == 0,
                    "M is %s: expected at most 128 rows or a multiple of 128",
                    rows);
            long tiles = rows / tileRows;
            require(
                    lnc >= 1 && tiles % programs(rows, lnc) == 0,
                    "%s tiles of %s rows (M is %s) for %s LNC programs: expected one tile, or"
                            + " tiles that the programs divide",
                    tiles,
                    tileRows,
                    rows,
                    lnc);
        }
    }

    private static void require(boolean holds, String otherwise, Object... values) {
        if (!holds) {
            throw new IllegalArgumentException(otherwise.formatted(values));
        }
    }

    /** Rows of a chunk; 0 leaves the choice to Weft. */
    public long tileRows(long rows) {
        return this == ROWS ? 0 : Math.min(rows, MAX_TILE_ROWS);
    }

    /** A single tile is one program's work; the other programs have none. */
    int programs(long rows, int lnc) {
        return this == TILED && rows > MAX_TILE_ROWS ? lnc : 1;
    }
}
