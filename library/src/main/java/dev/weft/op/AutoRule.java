package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;

/**
 * Which algorithm {@code auto} takes. A rule, not yet a measurement:
 *
 * <ol>
 *   <li>one rank, or no rows: sequential, since nothing is gathered;
 *   <li>ranks that share memory: direct, which copies nothing, so that no other algorithm moves
 *       fewer bytes;
 *   <li>otherwise mesh push, which needs one hop for every chunk.
 * </ol>
 */
final class AutoRule {

    private AutoRule() {}

    static Algorithm choose(Fabric fabric, Shards shards) {
        if (shards.ranks() == 1 || shards.totalRows() == 0) {
            return Algorithm.SEQUENTIAL;
        }
        return fabric.sharesMemory() ? Algorithm.DIRECT : Algorithm.MESH_PUSH;
    }
}
