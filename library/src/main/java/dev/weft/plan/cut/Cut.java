package dev.weft.plan.cut;

import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import java.util.List;
import java.util.stream.IntStream;

/** How a caller wants shards to be cut into chunks; zeros leave it to Weft. Immutable. */
public record Cut(long chunkRows, int splitsPerRank, long chunkCols) {

    /** Everything is left to Weft. */
    public static final Cut AUTOMATIC = new Cut(0, 0, 0);

    /**
     * The cost of packing a row again for every part of the columns, relative to reading a column
     * of B again for every block of rows. Measured: 2 with AVX-512 and 16 threads, 12 on
     * Neoverse-N1, where both together are under 2% of a product.
     */
    private static final double PACK_TO_READ = 4;

    /**
     * Fewer columns are not worth a separate product, even for workers that have nothing else to
     * do.
     */
    private static final long LEAST_PART_COLS = 64;

    /**
     * Tiles of rows for each worker from which on workers share rows, not columns, if rows are
     * finished whole. If they share columns, one of them finishes all rows. Measured with K of 1536
     * and N of 384 on two cores with AVX-512 (tiles of 12 rows): 16 rows take 126 us by columns,
     * 135 us by rows; 32 rows 229 and 236 us; 48 rows 272 us by rows.
     */
    private static final long LEAST_TILES = 1;

    /** Rows of a chunk of sums: small chunks start sooner, large ones are multiplied faster. */
    private static final long SUM_ROWS = 128;

    public Cut {
        if (chunkRows > 0 && splitsPerRank > 0) {
            throw new IllegalArgumentException(
                    "chunk rows %s and splits per rank %s: give one of the two"
                            .formatted(chunkRows, splitsPerRank));
        }
    }

    /** Whether the rows of a chunk are given and not left to Weft. */
    public boolean givesRows() {
        return chunkRows > 0 || splitsPerRank > 0;
    }

    /** The chunks of shards with {@code cols} columns, for an engine with that row quantum. */
    public Chunks chunks(Shards shards, long cols, int rowQuantum, long blockRows) {
        Chunks chunks;
        if (chunkRows > 0) {
            chunks = Chunks.byRows(shards, cols, chunkRows, blockRows);
        } else if (splitsPerRank > 0) {
            chunks = Chunks.bySplits(shards, cols, splitsPerRank, blockRows);
        } else {
            chunks = Chunks.automatic(shards, cols, rowQuantum, blockRows);
        }
        return chunkCols > 0 ? chunks.withChunkCols(chunkCols) : chunks;
    }

    /**
     * Chunks of sums, each multiplied as one block, so that it can be sent as soon as its product
     * is done. The rows must be given.
     */
    public Chunks sums(Shards shards, long cols) {
        long rows =
                chunkRows > 0
                        ? chunkRows
                        : Math.max(1, Math.ceilDiv(shards.maxRows(), splitsPerRank));
        return Chunks.byRows(shards, cols, rows, rows);
    }

    /**
     * Weft's own cut of rows whose products are summed over ranks.
     *
     * @param direct whether sums are sent only once they are whole
     * @param wholeRows whether only whole rows are finished: whoever multiplies the last of their
     *     columns would finish them, while the others wait
     * @param workers among whom blocks are divided
     * @param cols the columns of all products
     */
    public static Cut ofSums(
            Shards shards,
            boolean direct,
            boolean wholeRows,
            int workers,
            long cols,
            long rowQuantum,
            long mostRows) {
        if (!direct) {
            return new Cut(SUM_ROWS, 0, 0);
        }
        int takers =
                wholeRows
                        ? workers
                        : rowTakers(shards, workers, List.of(cols), rowQuantum, mostRows);
        return new Cut(blockRows(shards, takers, rowQuantum, mostRows), 0, 0);
    }

    /**
     * Rows that are multiplied at a time: {@code mostRows}, at which an engine reaches its full
     * rate, but few enough that each of {@code takers}, workers or lanes, gets some of a shard.
     */
    public static long blockRows(Shards shards, int takers, long rowQuantum, long mostRows) {
        long share = Math.ceilDiv(shards.maxRows(), takers);
        long quanta = Math.max(1, Math.ceilDiv(share, rowQuantum));
        return Math.min(mostRows, quanta * rowQuantum);
    }

    /**
     * Among how many of a rank's workers the rows of a shard are divided; the other workers share
     * the columns with these. It is all workers if blocks then still have {@code mostRows}, at
     * which an engine reaches its full rate. Otherwise it is fewer, with the height and width of
     * blocks that cost least.
     *
     * @param columns N of each product
     */
    public static int rowTakers(
            Shards shards, int workers, List<Long> columns, long rowQuantum, long mostRows) {
        int best = 1;
        double least = Double.MAX_VALUE;
        for (int parts = 1; parts <= workers; parts++) {
            if (workers % parts == 0) {
                long rows = blockRows(shards, workers / parts, rowQuantum, mostRows);
                double cost = 1.0 / rows + PACK_TO_READ * parts / meanColumns(columns);
                best = cost < least ? parts : best;
                least = Math.min(cost, least);
            }
        }
        return workers / best;
    }

    /**
     * Into how many parts the columns of every product are cut: as few as give each of a rank's
     * workers some of a shard or, if the parts would be narrow, some of all shards. The number
     * divides the workers, so that the parts come out even.
     *
     * @param programs the programs that share the row blocks
     * @param workers the workers of one program
     */
    public static int columnParts(Chunks chunks, int programs, int workers, List<Long> columns) {
        int ranks = chunks.shards().ranks();
        long most = IntStream.range(0, ranks).map(chunks::blocks).max().orElse(0) / programs;
        long all = IntStream.range(0, ranks).mapToLong(chunks::blocks).sum() / programs;
        return columnParts(chunks.shards().maxRows(), most, all, workers, columns);
    }

    /**
     * The same, given the rows of the largest shard and how many blocks of it, and of all shards, a
     * program has.
     */
    public static int columnParts(
            long shardRows, long most, long all, int workers, List<Long> columns) {
        double rows = (double) shardRows / Math.max(1, most);
        double narrowest = Math.max(LEAST_PART_COLS, PACK_TO_READ / 2 * rows);
        int parts = divisor(workers, meanColumns(columns) / narrowest, most);
        return parts * all >= workers
                ? parts
                : divisor(workers, meanColumns(columns) / LEAST_PART_COLS, all);
    }

    /**
     * Into how many parts the columns of a rank's blocks are cut if products are summed over ranks:
     * as few as give every worker a piece, unless the parts would be too narrow.
     */
    public static int sumColumnParts(int blocks, long cols, int workers) {
        int parts = 1;
        while (parts * blocks < workers && cols >= (parts + 1) * LEAST_PART_COLS) {
            parts++;
        }
        return parts;
    }

    /** Whether so few rows are enough for every worker to finish some of them whole. */
    public static boolean givesRowsToEach(long rows, int workers, long rowQuantum) {
        return rows >= LEAST_TILES * rowQuantum * workers;
    }

    /** Into how many parts the rows of a block are cut: as few as give every worker a piece. */
    public static int rowParts(long blocks, int workers) {
        return Math.toIntExact(Math.ceilDiv(workers, Math.max(1, blocks)));
    }

    private static double meanColumns(List<Long> columns) {
        return columns.stream().mapToLong(n -> n).average().orElse(0);
    }

    /** The least divisor of the workers that gives each a piece, or the greatest allowed one. */
    private static int divisor(int workers, double mostParts, long blocks) {
        int last = 1;
        for (int parts = 2; parts <= Math.min(workers, mostParts); parts++) {
            if (last * blocks >= workers) {
                break;
            }
            last = workers % parts == 0 ? parts : last;
        }
        return last;
    }
}
