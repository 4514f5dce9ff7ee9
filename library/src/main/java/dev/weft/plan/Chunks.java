package dev.weft.plan;

import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;

/**
 * How every shard is cut into chunks (what travels) and into row blocks (what is multiplied at a
 * time). A block is a whole number of chunks, or a chunk is a whole number of blocks; the last one
 * may be shorter. The larger of the two is a <em>segment</em>, the unit that planners assign to
 * lanes. Only two numbers per rank are stored; the rest is computed on demand, so that a plan for
 * thousands of ranks needs little memory. Immutable and thread-safe.
 */
public final class Chunks {

    /** More chunks give a finer pipeline, fewer need less signalling: aim between these two. */
    public static final int MIN_CHUNKS_PER_SOURCE = 64;

    private final Shards shards;
    private final long cols;
    private final long chunkCols;
    private final long[] chunkRows;
    private final long blockRows;
    private final int[] firstTag;

    private Chunks(Shards shards, long cols, long chunkCols, long[] chunkRows, long blockRows) {
        if (cols < 1 || chunkCols < 1 || blockRows < 1) {
            throw new IllegalArgumentException(
                    "%s columns, chunks of %s columns and blocks of %s rows: expected at least one of each"
                            .formatted(cols, chunkCols, blockRows));
        }
        this.shards = shards;
        this.cols = cols;
        this.chunkCols = Math.min(chunkCols, cols);
        this.chunkRows = chunkRows;
        this.blockRows = blockRows;
        checkCounts();
        this.firstTag = new int[shards.ranks() + 1];
        for (int s = 0; s < shards.ranks(); s++) {
            firstTag[s + 1] = firstTag[s] + rowChunks(s) * colChunks();
        }
    }

    /**
     * Chunk numbers, and the number of chunks that all ranks receive in total, must fit 32 bits.
     */
    private void checkCounts() {
        double count = 0;
        for (int s = 0; s < shards.ranks(); s++) {
            count += (double) Math.ceilDiv(shards.rows(s), chunkRows[s]);
        }
        count *= Math.ceilDiv(cols, chunkCols);
        int most = Integer.MAX_VALUE / shards.ranks();
        if (count > most) {
            throw new IllegalArgumentException(
                    String.format(
                            Locale.ROOT,
                            "%.0f chunks: expected at most %d for %d ranks",
                            count,
                            most,
                            shards.ranks()));
        }
    }

    /** Chunks of {@code chunkRows} full rows; the last one of a shard may be shorter. */
    public static Chunks byRows(Shards shards, long cols, long chunkRows, long blockRows) {
        if (chunkRows < 1) {
            throw new IllegalArgumentException(
                    "chunks of " + chunkRows + " rows: expected at least one");
        }
        IntToLongFunction rows = source -> chunkRows;
        return ofFullRows(shards, cols, blockRows, rows);
    }

    /**
     * Cuts every shard into chunks of {@code ceil(rows / splits)} full rows; the last one may be
     * shorter. This gives exactly {@code splits} chunks if that number divides the rows, otherwise
     * at most that many.
     */
    public static Chunks bySplits(Shards shards, long cols, int splits, long blockRows) {
        if (splits < 1) {
            throw new IllegalArgumentException(splits + " splits per rank: expected at least one");
        }
        IntToLongFunction rows = source -> Math.max(1, Math.ceilDiv(shards.rows(source), splits));
        return ofFullRows(shards, cols, blockRows, rows);
    }

    /**
     * Cuts each shard into 64 to 128 chunks of full rows if it has 64 quanta or more, otherwise
     * into one chunk per quantum. Every chunk but a shard's last is a multiple of {@code
     * rowQuantum} rows.
     */
    public static Chunks automatic(Shards shards, long cols, int rowQuantum, long blockRows) {
        return automatic(shards, cols, rowQuantum, blockRows, MIN_CHUNKS_PER_SOURCE);
    }

    /** Cuts each shard into one to two times {@code chunksPerSource} chunks if its rows allow. */
    public static Chunks automatic(
            Shards shards, long cols, int rowQuantum, long blockRows, int chunksPerSource) {
        if (rowQuantum < 1 || chunksPerSource < 1) {
            throw new IllegalArgumentException(
                    "row quantum of %s rows and %s chunks per source: expected at least one of each"
                            .formatted(rowQuantum, chunksPerSource));
        }
        long coarse = (long) rowQuantum * chunksPerSource;
        IntToLongFunction rows = source -> Math.max(1, shards.rows(source) / coarse) * rowQuantum;
        return ofFullRows(shards, cols, blockRows, rows);
    }

    static Chunks ofFullRows(
            Shards shards, long cols, long blockRows, IntToLongFunction chunkRows) {
        long[] rows = IntStream.range(0, shards.ranks()).mapToLong(chunkRows).toArray();
        return new Chunks(shards, cols, cols, rows, blockRows);
    }

    /** The same cut, with every chunk cut further into {@code chunkCols} columns. */
    public Chunks withChunkCols(long chunkCols) {
        return new Chunks(shards, cols, chunkCols, chunkRows, blockRows);
    }

    /** The requested maximum of rows that are multiplied at a time. */
    long mostBlockRows() {
        return blockRows;
    }

    public Shards shards() {
        return shards;
    }

    /** Columns of A, the K of the product. */
    public long cols() {
        return cols;
    }

    /** Columns of a full chunk; all columns if chunks are whole rows. */
    public long chunkCols() {
        return chunkCols;
    }

    /** Rows of a full chunk of {@code source}. */
    public long chunkRows(int source) {
        return chunkRows[shards.checked(source)];
    }

    /** Chunks of one shard. */
    public int count(int source) {
        return firstTag[shards.checked(source) + 1] - firstTag[source];
    }

    /** Chunks of all shards together. */
    public int total() {
        return firstTag[shards.ranks()];
    }

    /** The number of a chunk among all; {@code count(source)} gives the next shard's first one. */
    public int tag(int source, int index) {
        if (index != count(source)) {
            checkIndex("chunk", source, index, count(source));
        }
        return firstTag[source] + index;
    }

    private int rowChunks(int source) {
        return Math.toIntExact(Math.ceilDiv(shards.rows(source), chunkRows[source]));
    }

    /** Chunks side by side in one row of chunks; 1 if chunks are full rows. */
    public int colChunks() {
        return Math.toIntExact(Math.ceilDiv(cols, chunkCols));
    }

    /** Chunk {@code index} of the shard of {@code source}. */
    public Chunk chunk(int source, int index) {
        checkIndex("chunk", source, index, count(source));
        long firstRow = index / colChunks() * chunkRows[source];
        long firstCol = index % colChunks() * chunkCols;
        return new Chunk(
                source,
                index,
                firstRow,
                Math.min(chunkRows[source], shards.rows(source) - firstRow),
                firstCol,
                Math.min(chunkCols, cols - firstCol));
    }

    /**
     * Rows of a full block of {@code source}: the fewest equal blocks of whole chunks, so that no
     * small rest is left that would need B to be read once more.
     */
    private long blockRows(int source) {
        long chunk = chunkRows[source];
        if (blockRows < chunk) {
            return blockRows;
        }
        long most = blockRows / chunk * chunk;
        long blocks = Math.max(1, Math.ceilDiv(shards.rows(source), most));
        long even = Math.ceilDiv(shards.rows(source), blocks);
        return Math.max(1, Math.ceilDiv(even, chunk)) * chunk;
    }

    /** Rows of a full segment of {@code source}. */
    long segmentRows(int source) {
        return Math.max(blockRows(source), chunkRows[source]);
    }

    /** The row of the shard after the last one of a segment. */
    long endRow(int source, int segment) {
        return Math.min((segment + 1) * segmentRows(source), shards.rows(source));
    }

    /** Segments of one shard: each is a whole number of chunks and a whole number of blocks. */
    int segments(int source) {
        return Math.toIntExact(Math.ceilDiv(shards.rows(source), segmentRows(source)));
    }

    /** First chunk of a segment; {@code segments(source)} gives the number of chunks. */
    int firstChunkOfSegment(int source, int segment) {
        if (segment == segments(source)) {
            return count(source);
        }
        checkIndex("segment", source, segment, segments(source));
        return Math.toIntExact(segment * (segmentRows(source) / chunkRows[source]) * colChunks());
    }

    /** Blocks of one shard. */
    public int blocks(int source) {
        long segment = segmentRows(source);
        long rows = shards.rows(source);
        return Math.toIntExact(
                rows / segment * blocksPerSegment(source)
                        + Math.ceilDiv(rows % segment, blockRows(source)));
    }

    /** Block {@code index} of the shard of {@code source}, in row order. */
    RowBlock block(int source, int index) {
        checkIndex("block", source, index, blocks(source));
        long perSegment = blocksPerSegment(source);
        long segmentStart = index / perSegment * segmentRows(source);
        long firstRow = segmentStart + index % perSegment * blockRows(source);
        long end =
                Math.min(
                        Math.min(firstRow + blockRows(source), segmentStart + segmentRows(source)),
                        shards.rows(source));
        int firstRowChunk = Math.toIntExact(firstRow / chunkRows[source]);
        int endRowChunk = Math.toIntExact(Math.ceilDiv(end, chunkRows[source]));
        return new RowBlock(
                source,
                firstRow,
                end - firstRow,
                firstRowChunk * colChunks(),
                (endRowChunk - firstRowChunk) * colChunks());
    }

    /** First block of a segment; {@code segments(source)} gives the number of blocks. */
    int firstBlockOfSegment(int source, int segment) {
        if (segment == segments(source)) {
            return blocks(source);
        }
        checkIndex("segment", source, segment, segments(source));
        return Math.toIntExact(segment * blocksPerSegment(source));
    }

    /** Whether every block is one chunk. */
    public boolean multipliesOneByOne() {
        return colChunks() == 1
                && IntStream.range(0, shards.ranks())
                        .allMatch(s -> count(s) == 0 || blockRows(s) == chunkRows[s]);
    }

    private long blocksPerSegment(int source) {
        return Math.ceilDiv(segmentRows(source), blockRows(source));
    }

    private static void checkIndex(String what, int source, int index, int count) {
        if (index < 0 || index >= count) {
            throw new IllegalArgumentException(
                    what + " " + index + " of source " + source + ": it has " + count);
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Chunks chunks
                && shards.equals(chunks.shards)
                && cols == chunks.cols
                && chunkCols == chunks.chunkCols
                && blockRows == chunks.blockRows
                && Arrays.equals(chunkRows, chunks.chunkRows);
    }

    @Override
    public int hashCode() {
        return Objects.hash(shards, cols, chunkCols, blockRows, Arrays.hashCode(chunkRows));
    }

    @Override
    public String toString() {
        return "shards of %s rows x %s columns in chunks of %s rows x %s columns and blocks of %s rows"
                .formatted(shards, cols, Arrays.toString(chunkRows), chunkCols, blockRows);
    }

    /**
     * Rows of one shard that are multiplied together, once every chunk that covers them has
     * arrived.
     *
     * @param source the rank that owns the shard
     * @param firstRow relative to the shard
     * @param firstChunk first of the {@code chunkCount} consecutive chunks that cover the rows
     */
    record RowBlock(int source, long firstRow, long rows, int firstChunk, int chunkCount) {}
}
