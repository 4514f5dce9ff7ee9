package dev.weft.bench;

import dev.weft.report.Samples;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Worlds that take turns, a call each, so that a disturbance of the machine meets all of them. The
 * first one has a single rank, and gives the product that all others must give. Used by one thread.
 */
final class Turns implements AutoCloseable {

    private final List<RankWorld> worlds = new ArrayList<>();

    /** Takes the world over and closes it. */
    void add(RankWorld world) {
        worlds.add(world);
    }

    /** What the calls of every world took. */
    List<Samples> take(boolean quick) {
        int warmup = quick ? 2 : 5;
        long[][] ns = new long[worlds.size()][quick ? 3 : 15];
        for (int round = -warmup; round < ns[0].length; round++) {
            for (int world = 0; world < ns.length; world++) {
                // Warm-up rounds land in the first sample, which the first measured one replaces.
                ns[world][Math.max(0, round)] = worlds.get(world).callNs();
            }
        }
        Matrix product = worlds.getFirst().product();
        worlds.forEach(world -> world.check(product));
        return Arrays.stream(ns).map(Samples::ofNs).toList();
    }

    @Override
    public void close() {
        Cleanup.closeAll(worlds);
    }
}
