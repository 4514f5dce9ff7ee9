package dev.weft.search;

import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.cut.ArrivalCut.Block;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/** Finds the best {@link ArrivalCut} for a rank that gets its rows on one lane. Pure. */
public final class ArrivalCuts {

    /** The chunk size if the link is faster than the product. */
    private static final long CHUNK_BYTES = 16L << 20;

    /** Copies of narrower rectangles lose rate: see {@link ArrivalPrice}. */
    private static final long MIN_SLICE_BYTES = 512;

    private static final int MOST_SLICES = 5;

    private ArrivalCuts() {}

    /**
     * The cut that ends a call the soonest, by the rates of a machine.
     *
     * @param machine has a {@link dev.weft.sim.TileEngine}
     * @param ownRows rows that are there from the start
     * @param chunkRows the rows of every chunk that arrives, in order
     */
    public static ArrivalCut of(
            Machine machine,
            TileGrid grid,
            DType aType,
            long k,
            long n,
            long ownRows,
            List<Long> chunkRows) {
        ArrivalPrice price = new ArrivalPrice(machine, grid, aType, k, n, ownRows);
        int elementBytes = aType.bytes();
        List<List<Block>> whole = new ArrayList<>();
        for (long rows : chunkRows) {
            whole.add(price.isGatherBound() ? one(rows, k) : bySize(rows, k, elementBytes));
        }
        ArrivalCut best = new ArrivalCut(whole);
        if (chunkRows.isEmpty() || !price.isGatherBound()) {
            return best;
        }
        double bestUs = price.us(best);
        for (List<Block> last : lastChunks(chunkRows.getLast(), k, n, elementBytes, grid)) {
            for (List<List<Block>> before : befores(whole, k, n, grid)) {
                List<List<Block>> cut = new ArrayList<>(before);
                cut.add(last);
                ArrivalCut candidate = new ArrivalCut(cut);
                double us = price.us(candidate);
                if (us < bestUs) {
                    bestUs = us;
                    best = candidate;
                }
            }
        }
        return best;
    }

    /** No cut: every chunk arrives whole. */
    public static ArrivalCut none(long k, List<Long> chunkRows) {
        return new ArrivalCut(chunkRows.stream().map(rows -> one(rows, k)).toList());
    }

    private static List<Block> one(long rows, long k) {
        return List.of(new Block(rows, List.of(k), false));
    }

    private static List<Block> bySize(long rows, long k, int elementBytes) {
        long most = Math.max(1, CHUNK_BYTES / (k * elementBytes) / 256) * 256;
        List<Block> blocks = new ArrayList<>();
        for (long first = 0; first < rows; first += most) {
            blocks.add(new Block(Math.min(most, rows - first), List.of(k), false));
        }
        return blocks;
    }

    /**
     * The cuts to try before the last chunk: all chunks as they are; or the longest with its last
     * one to four rounds of the grid separate; or the second to last in two halves of its columns.
     * A cut by rows pays if a long chunk comes before a short one, which would otherwise arrive
     * while the long one is still being multiplied. Halves of columns are for a chunk of one round:
     * tiles of a second round could not use the first half before the first round has ended.
     */
    private static List<List<List<Block>>> befores(
            List<List<Block>> whole, long k, long n, TileGrid grid) {
        List<List<Block>> before = whole.subList(0, whole.size() - 1);
        List<List<List<Block>>> result = new ArrayList<>(List.of(before));
        if (before.isEmpty()) {
            return result;
        }
        long round = roundRows(n, grid.width(), grid);
        long half = k / 2 / grid.kBlock() * grid.kBlock();
        long rows = rows(before, before.size() - 1);
        if (half > 0 && rows <= round) {
            List<List<Block>> halved = new ArrayList<>(before);
            halved.set(halved.size() - 1, List.of(new Block(rows, List.of(half, k - half), false)));
            result.add(halved);
        }
        int longest = 0;
        for (int i = 1; i < before.size(); i++) {
            if (rows(before, i) >= rows(before, longest)) {
                longest = i;
            }
        }
        for (int rounds = 1; rounds <= 4; rounds++) {
            long end = rounds * round;
            long head = rows(before, longest) - end;
            if (head > 0) {
                List<List<Block>> cut = new ArrayList<>(before);
                cut.set(
                        longest,
                        List.of(
                                new Block(head, List.of(k), false),
                                new Block(end, List.of(k), false)));
                result.add(cut);
            }
        }
        return result;
    }

    private static long rows(List<List<Block>> chunks, int index) {
        return chunks.get(index).getFirst().rows();
    }

    /**
     * The cuts to try for the last chunk: some rows as they are, one to three rounds of the grid,
     * and a last block in slices.
     */
    private static List<List<Block>> lastChunks(
            long rows, long k, long n, int elementBytes, TileGrid grid) {
        List<List<Block>> result = new ArrayList<>();
        long round = roundRows(n, grid.width(), grid);
        for (boolean narrow : new boolean[] {false, true}) {
            long tail =
                    Math.min(rows, roundRows(n, narrow ? grid.narrowWidth() : grid.width(), grid));
            for (int rounds = 0; rounds <= 3; rounds++) {
                long middle = Math.min(rounds * round, rows - tail);
                long head = rows - tail - middle;
                for (List<Long> cols : slicings(k, elementBytes, grid.kBlock())) {
                    List<Block> blocks = new ArrayList<>();
                    if (head > 0) {
                        blocks.addAll(one(head, k));
                    }
                    if (middle > 0) {
                        blocks.addAll(one(middle, k));
                    }
                    blocks.add(new Block(tail, cols, narrow));
                    result.add(blocks);
                }
            }
        }
        return result;
    }

    /** Rows that keep all workers busy for one tile each; fewer if one row of tiles does. */
    private static long roundRows(long n, int width, TileGrid grid) {
        return Math.max(1L, grid.workers() / Math.ceilDiv(n, width)) * grid.rows();
    }

    /** One slice, or two to five that shrink by the same ratio. */
    private static List<List<Long>> slicings(long k, int elementBytes, long unit) {
        List<List<Long>> result = new ArrayList<>(List.of(List.of(k)));
        for (int slices = 2; slices <= MOST_SLICES; slices++) {
            for (double ratio : new double[] {0.25, 0.35, 0.5, 0.65, 0.8}) {
                List<Long> cols = slices(k, elementBytes, unit, ratio, slices);
                if (cols.size() > 1) {
                    result.add(cols);
                }
            }
        }
        return result;
    }

    private static List<Long> slices(
            long k, int elementBytes, long unit, double ratio, int slices) {
        long least = Math.max(unit, Math.ceilDiv(MIN_SLICE_BYTES / elementBytes, unit) * unit);
        double first = k * (1 - ratio) / (1 - Math.pow(ratio, slices));
        List<Long> cols = new ArrayList<>();
        long left = k;
        for (int i = 0; i < slices - 1; i++) {
            long take = Math.max(least, Math.round(first * Math.pow(ratio, i) / unit) * unit);
            if (left - take < least) {
                break;
            }
            cols.add(take);
            left -= take;
        }
        cols.add(left);
        return cols;
    }
}
