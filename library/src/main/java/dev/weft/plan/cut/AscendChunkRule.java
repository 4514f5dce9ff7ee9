package dev.weft.plan.cut;

/**
 * How the Ascend example cuts a source's rows into chunks. A chunk has 4 tiles of {@code baseM x
 * baseN} elements of A. If that makes more than 128 chunks, a chunk has ceil(tiles / 128) tiles,
 * rounded up to a multiple of 4, but at most 64. The tiles of a chunk follow each other row group
 * by row group; if such a run is not a rectangle, Weft uses whole row groups, the next larger
 * rectangle.
 *
 * @param rows the rows of a chunk
 * @param cols the columns of a chunk
 * @param tiles the tiles of a chunk by the rule, before it is made a rectangle
 */
public record AscendChunkRule(long rows, long cols, long tiles) {

    /** The example's tile sizes. */
    public static final long BASE_M = 128;

    public static final long BASE_N = 256;

    private static final long TILES_PER_CHUNK = 4;
    private static final long MAX_TILES_PER_CHUNK = 64;
    private static final long MAX_CHUNKS = 128;

    /** The rule for a largest shard of {@code sourceRows} rows and {@code k} columns. */
    public static AscendChunkRule of(long sourceRows, long k, long baseM, long baseN) {
        if (baseM < 1 || baseN < 1) {
            throw new IllegalArgumentException(
                    "tiles of " + baseM + " x " + baseN + ": expected at least 1 x 1");
        }
        long tilesPerRowGroup = Math.ceilDiv(k, baseN);
        long sourceTiles = Math.ceilDiv(sourceRows, baseM) * tilesPerRowGroup;
        long tiles = TILES_PER_CHUNK;
        if (Math.ceilDiv(sourceTiles, TILES_PER_CHUNK) > MAX_CHUNKS) {
            long fewer = Math.ceilDiv(sourceTiles, MAX_CHUNKS);
            tiles =
                    Math.min(
                            MAX_TILES_PER_CHUNK,
                            Math.ceilDiv(fewer, TILES_PER_CHUNK) * TILES_PER_CHUNK);
        }
        boolean withinRowGroup = tilesPerRowGroup % tiles == 0;
        return withinRowGroup
                ? new AscendChunkRule(baseM, tiles * baseN, tiles)
                : new AscendChunkRule(
                        baseM * Math.ceilDiv(tiles, tilesPerRowGroup), Math.max(1, k), tiles);
    }

    /** Chunks of that size. */
    public Cut cut() {
        return new Cut(rows, 0, cols);
    }
}
