package dev.weft.op;

import dev.weft.fabric.Fabric;

/**
 * Ranks that prepare one operator must mean the same one. Each property is exchanged under its
 * name, so that a mismatch says what differs, and between whom. Collective.
 */
public final class Agreement {

    private final Fabric fabric;

    public Agreement(Fabric fabric) {
        this.fabric = fabric;
    }

    /** Throws on every rank if some rank's value differs from the first rank's. */
    public void on(String property, long value) {
        long[] values = fabric.exchange(value);
        for (int r = 1; r < values.length; r++) {
            if (values[r] != values[0]) {
                throw new IllegalArgumentException(
                        "the ranks prepare different operators: "
                                + property
                                + " is "
                                + values[0]
                                + " on rank "
                                + fabric.worldRank(0)
                                + " and "
                                + values[r]
                                + " on rank "
                                + fabric.worldRank(r));
            }
        }
    }

    /** The first rank's value. */
    public long ofFirst(long value) {
        return fabric.exchange(value)[0];
    }
}
