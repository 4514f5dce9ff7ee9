package dev.weft.search;

import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.cut.ArrivalCut.Block;
import dev.weft.sim.Machine;
import dev.weft.sim.TileEngine;
import dev.weft.tensor.DType;
import java.util.List;

/**
 * Predicts when a pipelined call would end with a given {@link ArrivalCut}. Slices arrive one after
 * the other over the link. Each is multiplied once it has arrived and the one before it is done.
 * The simulator does not know slices, so this uses its own price, with the machine's rates. Pure.
 */
record ArrivalPrice(Machine machine, TileGrid grid, DType aType, long k, long n, long ownRows) {

    ArrivalPrice {
        if (!(machine.engine() instanceof TileEngine engine) || !engine.knows(aType)) {
            throw new IllegalArgumentException(
                    "%s for A of %s: expected a machine whose engine computes tiles of that type"
                            .formatted(machine.name(), aType.label()));
        }
    }

    /** For each column of A and of a tile. */
    private double tileUs() {
        TileEngine engine = (TileEngine) machine.engine();
        double perUs = engine.gflops().get(aType) * 1e3;
        return 2.0 * engine.tileRows() / perUs;
    }

    /** The link's time for {@code cols} columns of one row. */
    private double linkUs(long cols) {
        return cols * aType.bytes() / (machine.node().gbps() * 1e3);
    }

    /** Whether rows are multiplied faster than they arrive. */
    boolean isGatherBound() {
        double tiles = (double) Math.ceilDiv(n, grid.width()) / grid.rows();
        double productUsPerRow = tiles * tileUs() * k * grid.width() / grid.workers();
        return productUsPerRow < linkUs(k);
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
                cols == k ? 0 : machine.copies().rowNs(cols * aType.bytes(), k * aType.bytes());
        return linkUs(cols) + extraNs / 1e3;
    }

    private double multiplyUs(long rows, long cols, boolean narrow) {
        int width = narrow ? grid.narrowWidth() : grid.width();
        long tiles = Math.ceilDiv(rows, grid.rows()) * Math.ceilDiv(n, width);
        return Math.ceilDiv(tiles, grid.workers()) * tileUs() * width * cols;
    }
}
