package dev.weft.cuda;

import dev.weft.plan.ArrivalCut;
import dev.weft.plan.ArrivalCut.Block;
import java.util.List;

/**
 * When a pipelined call would end: pieces arrive one after the other over the link, and a block is
 * multiplied slice by slice once it is there and the block before it is done. The rates are those
 * of an H200 behind PCIe 5; elsewhere the cut that they lead to is merely not the best one. Pure.
 */
final class ArrivalPrice {

    /** A tile of 128 x 256 takes 46 us for 4096 columns of A, and some more while copies run. */
    private static final double TILE_US = 50.0 / (4096 * 256);

    /** Pinned host memory to the device. */
    private static final double LINK_BYTES_PER_US = 55_400;

    /** What every copy costs besides its bytes, 2.5 us, and its flag, 2 us. */
    private static final double COPY_US = 4.5;

    /**
     * Rectangles of 4096 bytes a row and more move like whole rows. 1024 narrower rows took 1 us
     * longer than their bytes where rows are 8 KiB apart, and 5.5 us where they are 32 KiB apart.
     */
    private static final long FULL_RATE_BYTES = 4096;

    private static final double NEAR_ROW_US = 1.0 / 1024;
    private static final double FAR_ROW_US = 5.5 / 1024;
    private static final long FAR_BYTES = 16 << 10;

    private static final double LAUNCH_US = 8;

    private final long ownRows;
    private final long k;
    private final long n;
    private final int elementBytes;
    private final TileShape shape;

    ArrivalPrice(long ownRows, long k, long n, int elementBytes, TileShape shape) {
        this.ownRows = ownRows;
        this.k = k;
        this.n = n;
        this.elementBytes = elementBytes;
        this.shape = shape;
    }

    /** Whether rows are multiplied faster than they arrive. */
    boolean isGatherBound() {
        double tiles = (double) shape.across(n, shape.width()) / shape.rows();
        double productUsPerRow = tiles * tileUs(shape.width()) / shape.workers();
        return productUsPerRow < k * elementBytes / LINK_BYTES_PER_US;
    }

    private double tileUs(int width) {
        return TILE_US * k * width;
    }

    double us(ArrivalCut cut) {
        double link = 0;
        double grid = LAUNCH_US + multiplyUs(ownRows, k, false);
        for (List<Block> chunk : cut.chunks()) {
            for (Block block : chunk) {
                for (long cols : block.cols()) {
                    link += COPY_US + block.rows() * rowUs(cols);
                    grid = Math.max(grid, link) + multiplyUs(block.rows(), cols, block.narrow());
                }
            }
        }
        return grid;
    }

    private double rowUs(long cols) {
        long bytes = cols * elementBytes;
        double extraUs = k * elementBytes > FAR_BYTES ? FAR_ROW_US : NEAR_ROW_US;
        boolean fullRate = cols == k || bytes >= FULL_RATE_BYTES;
        return bytes / LINK_BYTES_PER_US + (fullRate ? 0 : extraUs);
    }

    private double multiplyUs(long rows, long cols, boolean narrow) {
        int width = narrow ? shape.narrowWidth() : shape.width();
        long tiles = Math.ceilDiv(rows, shape.rows()) * shape.across(n, width);
        return Math.ceilDiv(tiles, shape.workers()) * tileUs(width) * cols / k;
    }
}
