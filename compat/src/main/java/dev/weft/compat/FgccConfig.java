package dev.weft.compat;

import dev.weft.tensor.DType;

/**
 * What FGCC's source reads from the machine. Immutable.
 *
 * @param lnc logical-core programs per rank, L: 1 or 2
 * @param onChipBytes on-chip memory of one program, which decides the path
 * @param sharedResult whether the other ranks of the group may read this rank's result, as in the
 *     source's shared HBM, by {@link FgccResult#peer}; for prepared calls, as single ones always do
 */
public record FgccConfig(int lnc, long onChipBytes, boolean sharedResult) {

    /** On-chip memory of a trn2 core. */
    public static final long TRN2_ON_CHIP_BYTES = 24L << 20;

    /** One program per rank, and the capacity of trn2. */
    public static final FgccConfig DEFAULT = new FgccConfig(1, TRN2_ON_CHIP_BYTES);

    /** A configuration whose result only this rank reads. */
    public FgccConfig(int lnc, long onChipBytes) {
        this(lnc, onChipBytes, false);
    }

    public FgccConfig {
        checkedLnc(lnc);
        if (onChipBytes < 0) {
            throw new IllegalArgumentException(
                    "on-chip memory of " + onChipBytes + " bytes: expected zero or more");
        }
    }

    /** C, the channels of the permute, for {@code tpDegree} ranks. */
    public int channels(int tpDegree) {
        return FgccLayout.channels(lnc, tpDegree);
    }

    /**
     * Where the ring fragments of A are kept, by the source's rule.
     *
     * @param m rows of A on each rank
     * @param n columns of B on this rank
     */
    public Fgcc.Path path(
            int tpDegree, long m, long k, long n, DType aType, DType bType, boolean forceHbmCc) {
        int slices = lnc * channels(tpDegree);
        return Fgcc.Path.choose(this, slices, m, k, n, aType, bType, forceHbmCc);
    }

    static int checkedLnc(int lnc) {
        if (lnc < 1 || lnc > 2) {
            throw new IllegalArgumentException("lnc " + lnc + ": expected 1 or 2");
        }
        return lnc;
    }

    /** A copy with another number of programs per rank. */
    public FgccConfig withLnc(int lnc) {
        return new FgccConfig(lnc, onChipBytes, sharedResult);
    }

    /** A copy with another capacity. */
    public FgccConfig withOnChipBytes(long onChipBytes) {
        return new FgccConfig(lnc, onChipBytes, sharedResult);
    }

    /** A copy with results that the other ranks of the group may read. */
    public FgccConfig withSharedResult() {
        return new FgccConfig(lnc, onChipBytes, true);
    }
}
