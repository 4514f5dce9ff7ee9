package dev.weft.search;

import dev.weft.plan.ArrivalCut;
import dev.weft.plan.ArrivalCut.Block;
import dev.weft.sim.Machine;
import dev.weft.sim.TileEngine;
import dev.weft.tensor.DType;
import java.util.List;

/**
 * Predicts when a pipelined call would end with a given {@link ArrivalCut}. Slices arrive one after
 * the other over the link. Each is multiplied once it is there and the one before it is done. The
 * simulator knows no slices, hence this price of its own, with the machine's rates. Pure.
 */
final class ArrivalPrice {

    private final Machine machine;
    private final TileGrid grid;
    private final long k;
    private final long n;
    private final long ownRows;
    private final int elementBytes;
    private final double bytesPerUs;

    /** For each column of A and of a tile, while copies run. */
    private final double tileUs;

    ArrivalPrice(Machine machine, TileGrid grid, DType aType, long k, long n, long ownRows) {
        if (!(machine.engine() instanceof TileEngine engine) || !engine.knows(aType)) {
            throw new IllegalArgumentException(
                    "%s for A of %s: expected a machine whose engine computes tiles of that type"
                            .formatted(machine.name(), aType.label()));
        }
        this.machine = machine;
        this.grid = grid;
        this.k = k;
        this.n = n;
        this.ownRows = ownRows;
        this.elementBytes = aType.bytes();
        this.bytesPerUs = machine.node().gbps() * 1e3;
        this.tileUs =
                2.0
                        * engine.tileRows()
                        / (engine.gflops().get(aType) * 1e3)
                        * machine.copies().tileSlowdown();
    }

    /** Whether rows are multiplied faster than they arrive. */
    boolean isGatherBound() {
        double tiles = (double) grid.across(n, grid.width()) / grid.rows();
        double productUsPerRow = tiles * tileUs * k * grid.width() / grid.workers();
        return productUsPerRow < k * elementBytes / bytesPerUs;
    }

    double us(ArrivalCut cut) {
        double link = 0;
        double busy = machine.overheads().callUs() + multiplyUs(ownRows, k, false);
        for (List<Block> chunk : cut.chunks()) {
            for (Block block : chunk) {
                for (long cols : block.cols()) {
                    link += machine.overheads().transferUs() + block.rows() * rowUs(cols);
                    busy = Math.max(busy, link) + multiplyUs(block.rows(), cols, block.narrow());
                }
            }
        }
        return busy;
    }

    private double rowUs(long cols) {
        double extraNs =
                cols == k ? 0 : machine.copies().rowNs(cols * elementBytes, k * elementBytes);
        return cols * elementBytes / bytesPerUs + extraNs / 1e3;
    }

    private double multiplyUs(long rows, long cols, boolean narrow) {
        int width = narrow ? grid.narrowWidth() : grid.width();
        long tiles = Math.ceilDiv(rows, grid.rows()) * grid.across(n, width);
        return Math.ceilDiv(tiles, grid.workers()) * tileUs * width * cols;
    }
}
