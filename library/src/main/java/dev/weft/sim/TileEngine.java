package dev.weft.sim;

import dev.weft.tensor.DType;
import java.util.EnumMap;
import java.util.Map;

/**
 * Units that each compute a tile of C at a time, over all of K, in the order of consumption: the
 * streaming multiprocessors of a GPU, the cube cores of an NPU. A tile at the edge of its rows or
 * columns takes as long as a whole one. Transfers use none of the units' time.
 *
 * @param gflops the rate of one unit, in 10^9 operations a second, by the type of A
 * @param tileUs the time of a tile besides its operations
 */
public record TileEngine(
        int units, long tileRows, long tileCols, Map<DType, Double> gflops, double tileUs)
        implements Engine {

    public TileEngine {
        gflops = Map.copyOf(gflops);
        if (units < 1 || tileRows < 1 || tileCols < 1 || gflops.isEmpty() || !(tileUs >= 0)) {
            throw new IllegalArgumentException(
                    "%s units with tiles of %s x %s, %s GFLOP/s and %s us a tile: expected at least one unit, a tile of one element or more and a rate"
                            .formatted(units, tileRows, tileCols, gflops, tileUs));
        }
        gflops.forEach(
                (type, rate) -> {
                    if (!(rate > 0)) {
                        throw new IllegalArgumentException(
                                "%s GFLOP/s for %s: expected more than zero"
                                        .formatted(rate, type.label()));
                    }
                });
    }

    @Override
    public long rowQuantum() {
        return tileRows;
    }

    @Override
    public long blockRows() {
        return tileRows;
    }

    @Override
    public boolean knows(DType aType) {
        return gflops.containsKey(aType);
    }

    @Override
    public TileEngine faster(double factor) {
        Map<DType, Double> rates = new EnumMap<>(DType.class);
        gflops.forEach((type, rate) -> rates.put(type, rate * factor));
        return new TileEngine(units, tileRows, tileCols, rates, tileUs);
    }
}
