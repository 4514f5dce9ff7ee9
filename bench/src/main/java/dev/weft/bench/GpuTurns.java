package dev.weft.bench;

import dev.weft.report.Samples;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.stream.DoubleStream;

/**
 * Things on the GPU that take turns, so that a change of its clocks meets all of them. Who begins
 * changes from round to round, and every other round goes backwards, so that nobody always follows
 * the same neighbour. Used by one thread.
 */
final class GpuTurns {

    private GpuTurns() {}

    /**
     * Which of {@code count} things has the turn at {@code position} of a round.
     *
     * @param round negative ones are allowed
     */
    static int thing(int round, int position, int count) {
        int step = Math.floorMod(round, 2) == 0 ? position : -position;
        return Math.floorMod(Math.floorDiv(round, 2) + step, count);
    }

    /**
     * What every thing took, by name.
     *
     * @param turns each does its thing once and gives the microseconds that count
     * @param warmup rounds that do not count
     */
    static Map<String, Samples> take(Map<String, DoubleSupplier> turns, int warmup, int rounds) {
        List<DoubleSupplier> things = List.copyOf(turns.values());
        double[][] us = new double[things.size()][rounds];
        for (int round = -warmup; round < rounds; round++) {
            for (int position = 0; position < us.length; position++) {
                int thing = thing(round, position, us.length);
                // Warm-up rounds land in the first sample, which the first counted one replaces.
                us[thing][Math.max(0, round)] = things.get(thing).getAsDouble();
            }
        }
        Map<String, Samples> times = new LinkedHashMap<>();
        List<String> names = new ArrayList<>(turns.keySet());
        for (int thing = 0; thing < us.length; thing++) {
            times.put(names.get(thing), samples(us[thing]));
        }
        return times;
    }

    static Samples samples(double[] us) {
        return new Samples(DoubleStream.of(us).boxed().toList());
    }
}
