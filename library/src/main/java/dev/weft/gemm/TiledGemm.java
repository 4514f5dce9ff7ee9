package dev.weft.gemm;

import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The engine that cuts C into blocks, which {@link TiledBlock} computes, and those into tiles,
 * which machine code multiplies ({@link dev.weft.gemm.code.TileCode}), or where there is none the
 * Vector API ({@link VectorTiles}). Stateless, any thread may call it.
 */
final class TiledGemm implements Gemm {

    private static final int DEPTH = Blocking.DEPTH;

    private final Tiles tiles;
    private final int tileRows;
    private final int tileCols;
    private final Blocking blocking;

    TiledGemm(Tiles tiles) {
        this(tiles, Blocking.of(tiles.rows()));
    }

    TiledGemm(Tiles tiles, Blocking blocking) {
        this.tiles = tiles;
        this.blocking = blocking;
        this.tileRows = tiles.rows();
        this.tileCols = tiles.cols();
    }

    @Override
    public String name() {
        return tiles.name();
    }

    @Override
    public int rowQuantum() {
        return tileRows;
    }

    /** Fewer rows would read B more often than the caches like (see {@link Blocking}). */
    @Override
    public long blockRows() {
        return Blocking.roundUp(blocking.rows(), tileRows);
    }

    @Override
    public long cacheBytes() {
        return blocking.cacheBytes();
    }

    @Override
    public long packedBytes(long k, long n) {
        return PackedB.bytes(k, n, tileCols);
    }

    @Override
    public PackedB packed(long k, long n, MemorySegment memory) {
        return new PackedB(k, n, tileCols, DEPTH, memory);
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return new TiledBlock(tiles, (int) blockRows(), sumCols(n), arena);
    }

    @Override
    public void multiply(
            Matrix a, long aRow, long rows, PackedB b, Matrix c, long cRow, Scratch scratch) {
        Gemm.check(a, aRow, rows, b, c, cRow);
        b.requireLayout(tileCols, DEPTH, name());
        TiledBlock own = TiledBlock.of(scratch, tiles, (int) blockRows(), sumCols(b.n()));
        int blockRows = Blocking.even(rows, blocking.rowsFor(b, tileCols, tileRows), tileRows);
        int blockCols = Blocking.even(b.n(), blocking.cols(), tileCols);
        // Loops 1 and 2: blocks of C, each finished before the next begins.
        for (long row = 0; row < rows; row += blockRows) {
            int height = (int) Math.min(blockRows, rows - row);
            for (long col = 0; col < b.n(); col += blockCols) {
                int width = (int) Math.min(blockCols, b.n() - col);
                own.multiply(a, aRow + row, b, c, cRow + row, col, height, width);
            }
        }
    }

    private int sumCols(long n) {
        return Blocking.roundUp((int) Math.min(n, blocking.cols()), tileCols);
    }
}
