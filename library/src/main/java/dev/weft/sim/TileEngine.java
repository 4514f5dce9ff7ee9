package dev.weft.sim;

import dev.weft.tensor.DType;
import java.util.EnumMap;
import java.util.Map;

/**
 * Units that each compute a tile of C at a time, over all of K, in the order of consumption: the
 * streaming multiprocessors of a GPU, the cube cores of an NPU. A tile that is cut by the edge of
 * its rows or columns takes as long as a whole one. Transfers take none of the units' time.
 *
 * @param gflops of one unit, in 10^9 operations a second, by the type of A
 * @param tileUs what a tile takes besides its operations
 */
public record TileEngine(
        int units, long tileRows, long tileCols, Map<DType, Double> gflops, double tileUs)
        implements Engine {

    public TileEngine {
        gflops = Map.copyOf(gflops);
        if (units < 1 || tileRows < 1 || tileCols < 1 || gflops.isEmpty() || !(tileUs >= 0)) {
            throw new IllegalArgumentException(
                    units
                            + " units with tiles of "
                            + tileRows
                            + " x "
                            + tileCols
                            + ", "
                            + gflops
                            + " GFLOP/s and "
                            + tileUs
                            + " us a tile: expected at least one unit, a tile of one element or more and a"
                            + " rate");
        }
        gflops.forEach(
                (type, rate) -> {
                    if (!(rate > 0)) {
                        throw new IllegalArgumentException(
                                rate
                                        + " GFLOP/s for "
                                        + type.label()
                                        + ": expected more than zero");
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
