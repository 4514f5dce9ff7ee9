package dev.weft.gemm;

import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The engine that cuts C into blocks, which {@link TiledBlock} computes, and blocks into tiles,
 * which machine code multiplies ({@link dev.weft.gemm.code.TileCode}) or, if there is none, Java
 * ({@link VectorTiles}, {@link ScalarTiles}). Stateless and thread-safe.
 */
final class TiledGemm implements Gemm {

    private final Tiles tiles;
    private final int tileRows;
    private final int tileCols;
    private final Blocking blocking;
    private final ScratchKind scratchKind;

    private record ScratchKind(Tiles tiles, Blocking blocking) {}

    TiledGemm(Tiles tiles) {
        this(tiles, Blocking.of(tiles));
    }

    TiledGemm(Tiles tiles, Blocking blocking) {
        if (Tiles.paddedDepth(tiles.pairs(), blocking.depth()) != blocking.depth()) {
            throw new IllegalArgumentException(
                    "depth %s (property weft.gemm.depth): engine %s takes multiples of %s"
                            .formatted(blocking.depth(), tiles.name(), Tiles.BF16_STEP));
        }
        this.tiles = tiles;
        this.blocking = blocking;
        this.scratchKind = new ScratchKind(tiles, blocking);
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

    @Override
    public int colQuantum() {
        return tileCols;
    }

    /** With fewer rows, B would be read too often from far caches (see {@link Blocking}). */
    @Override
    public long blockRows() {
        return Blocking.roundUp(blocking.rows(), tileRows);
    }

    @Override
    public long cacheBytes() {
        return blocking.cacheBytes();
    }

    @Override
    public Bits bits() {
        return tiles.type() == DType.FP32 ? Bits.PORTABLE : Bits.OWN;
    }

    @Override
    public int sumQuantum() {
        return (int) Tiles.paddedDepth(tiles.pairs(), 1);
    }

    @Override
    public boolean multiplies(DType type) {
        return tiles.type() == DType.FP32 ? !type.isScaled() : tiles.type() == type;
    }

    @Override
    public long packedBytes(long k, long n, DType type) {
        return PackedB.bytes(k, n, tileCols, packedType(n, type), tiles.pairs());
    }

    @Override
    public PackedB packed(long k, long n, DType type, MemorySegment memory) {
        DType own = packedType(n, type);
        return new PackedB(k, n, tileCols, blocking.depth(), own, tiles.pairs(), memory);
    }

    /** One panel is small, and is read once for each few rows: it is widened only once. */
    private DType packedType(long n, DType type) {
        return tiles.keeps(type) && n > tileCols ? type : tiles.type();
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return new TiledBlock(tiles, blocking.depth(), (int) blockRows(), sumCols(n), arena);
    }

    @Override
    public Object scratchKind() {
        return scratchKind;
    }

    @Override
    public void multiply(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow,
            Scratch scratch) {
        Gemm.check(a, aRow, rows, b, firstCol, cols, tileCols, resume, c, cRow);
        check(a, b);
        TiledBlock own =
                TiledBlock.of(scratch, tiles, blocking.depth(), (int) blockRows(), sumCols(cols));
        int blockRows = Blocking.even(rows, blocking.rows(), tileRows);
        int blockCols = Blocking.even(cols, blocking.cols(), tileCols);
        long endCol = firstCol + cols;
        if (resume && b.k() == 0) {
            return;
        }
        long depth = depth(a, b);
        // Loops 1 and 2: blocks of C, each finished before the next begins.
        for (long row = 0; row < rows; row += blockRows) {
            int height = (int) Math.min(blockRows, rows - row);
            for (long col = firstCol; col < endCol; col += blockCols) {
                int width = (int) Math.min(blockCols, endCol - col);
                own.multiply(a, aRow + row, b, depth, resume, c, cRow + row, col, height, width);
            }
        }
    }

    // Methods of their own: the JIT compiler inlines no large method, and a caller's view of a
    // matrix would become a heap object.

    private void check(Matrix a, PackedB b) {
        if (!multiplies(a.dtype())) {
            throw new IllegalArgumentException(
                    "engine %s multiplies %s only: A is %s"
                            .formatted(name(), tiles.type().label(), a.describe()));
        }
        DType elements = tiles.keeps(b.type()) ? b.type() : tiles.type();
        b.requireLayout(tileCols, blocking.depth(), elements, tiles.pairs(), name());
    }

    /** How much of K is summed at a time: in place all, unless B would come from a far cache. */
    private long depth(Matrix a, PackedB b) {
        boolean whole = TiledBlock.readsInPlace(tiles, a, b) && !blocking.isFar(b);
        return whole ? b.k() : blocking.depth();
    }

    private int sumCols(long n) {
        return Blocking.roundUp((int) Math.min(n, blocking.cols()), tileCols);
    }
}
