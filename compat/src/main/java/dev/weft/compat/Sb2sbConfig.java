package dev.weft.compat;

import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import java.util.Objects;

/**
 * Options of an {@link Sb2sb} gather beyond the arguments of the original.
 *
 * @param algorithm how the bytes travel; the result is the same for each
 * @param onChipBytes the capacity that the input of an untiled gather must fit
 */
public record Sb2sbConfig(GatherWriter algorithm, long onChipBytes) {

    /** Weft's choice of the algorithm, and the capacity of the original's machine, 24 MiB. */
    public static final Sb2sbConfig DEFAULT = new Sb2sbConfig(Algorithm.AUTO, 24L << 20);

    public Sb2sbConfig {
        Objects.requireNonNull(algorithm, "algorithm");
        if (onChipBytes < 1) {
            throw new IllegalArgumentException(
                    "an on-chip capacity of " + onChipBytes + " bytes: expected at least one");
        }
    }

    /**
     * The algorithm, split between the programs of a rank. They need one that writes plans: for
     * auto, the one that auto uses for a gather.
     *
     * @param inPlace whether ranks can copy straight from each other's memory
     */
    GatherWriter byPrograms(int programs, boolean inPlace) {
        if (programs == 1) {
            return algorithm;
        }
        GatherWriter gather = inPlace ? Algorithm.DIRECT : Algorithm.MESH_PUSH;
        return Algorithm.byPrograms(algorithm == Algorithm.AUTO ? gather : algorithm, programs);
    }
}
