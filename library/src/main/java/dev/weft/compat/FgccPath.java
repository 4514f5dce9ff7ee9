package dev.weft.compat;

import dev.weft.tensor.DType;

/** Where FGCC keeps the ring fragments of A. */
public enum FgccPath {
    /** In the on-chip double buffer only; slices of a rank's rows are numbered l * C + c. */
    SBUF,
    /** In two [m, K] buffers in main memory; slices of a rank's rows are numbered c * L + l. */
    HBM;

    private static final long TILE_COLS = 512;

    /**
     * The source's rule. Two thirds of the chip may hold B, double-buffered: all of it, or as many
     * tiles of its columns as fit. SBUF is taken where the rest holds two fragments of the rows of
     * one program.
     *
     * @param m rows of A on one rank
     * @param k columns of A and rows of B
     * @param n columns of B on this rank
     */
    static FgccPath choose(
            FgccConfig config, long m, long k, long n, DType aType, DType bType, boolean forceHbm) {
        if (forceHbm) {
            return HBM;
        }
        double left = config.onChipBytes() - 2 * rhsBlockBytes(config, k, n, bType);
        double fragmentBytes = Math.ceil((double) m / config.lnc()) * k * aType.bytes();
        return 2 * fragmentBytes <= left ? SBUF : HBM;
    }

    /** Bytes of the columns of B that are on chip at a time. In doubles, which cannot overflow. */
    private static double rhsBlockBytes(FgccConfig config, long k, long n, DType bType) {
        double columnBytes = (double) k * bType.bytes();
        double limit = config.onChipBytes() / 3 * 2;
        if (2 * columnBytes * n <= limit) {
            return columnBytes * n;
        }
        double tileBytes = columnBytes * Math.min(n, TILE_COLS);
        return Math.max(1, Math.floor(limit / (2 * tileBytes))) * tileBytes;
    }
}
