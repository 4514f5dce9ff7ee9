package dev.weft.op;

import dev.weft.fabric.Fabric;
import java.util.Arrays;

/** Times of calls that all ranks make together; the same on every rank. */
final class GroupTimes {

    private GroupTimes() {}

    /** What the slowest rank took. Collective. */
    static double slowestNs(Fabric fabric, long ownNs) {
        return Arrays.stream(fabric.exchange(ownNs)).max().orElseThrow();
    }
}
