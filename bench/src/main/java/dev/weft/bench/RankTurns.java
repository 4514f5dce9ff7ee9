package dev.weft.bench;

import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.View;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;

/**
 * Operators of one fabric that take turns, a call each, as {@link Interleaved} has it. Collective:
 * every rank has the same operators in the same order, and all find the same. Used by one thread of
 * each rank.
 */
final class RankTurns {

    private final Fabric fabric;
    private final Interleaved turns;

    /** One that takes turns, with what it does then. */
    record Side(AllGatherMatmul operator, View view) {}

    RankTurns(Fabric fabric, Interleaved.Effort effort) {
        this.fabric = fabric;
        // The first rank's clock for all: they must agree on how many rounds there are.
        this.turns = new Interleaved(effort, () -> fabric.exchange(System.nanoTime())[0]);
    }

    /** What the slowest rank took, by side and round. */
    Interleaved.Outcome measure(List<Side> sides) throws IOException, InterruptedException {
        return turns.measure(
                sides.stream().<Interleaved.Turn>map(side -> () -> slowestNs(side)).toList());
    }

    /** One more turn of each side, in order. */
    long[] round(List<Side> sides) {
        return sides.stream().mapToLong(this::slowestNs).toArray();
    }

    private long slowestNs(Side side) {
        fabric.barrier();
        long own = side.operator().callInPlace(side.view()).elapsedNs();
        return Arrays.stream(fabric.exchange(own)).max().orElseThrow();
    }
}
