package dev.weft.gemm;

import dev.weft.ffi.LargePages;
import dev.weft.gemm.code.Arguments;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A block of C that one thread computes: some rows and columns of it, over all of K. It includes
 * the working memory.
 *
 * <p>Sums stay in fp32 from the first block of K to the last: in C if it is fp32 off the heap and
 * holds the whole tile, otherwise in scratch. They are continued there, so blocking never changes
 * the order of additions. Sums in scratch are rounded to C's type at the end. Sums that continue C
 * begin with what it holds.
 */
final class TiledBlock implements Scratch {

    /**
     * The most tiles per call: 256 of 8 x 12 x 512 take 640 us on Neoverse-N1, the longest that a
     * garbage collector has to wait. Fewer make a first call slower, while Java interprets: 128 by
     * 9 ms of 30.
     */
    private static final int TILES_PER_CALL = 256;

    /**
     * Up to as many tiles, a panel of 16 bits is widened in registers whenever a tile reads it; for
     * more of them once, into scratch. Measured with AVX-512 and bf16, 4096 x 4096: in registers 12
     * rows take 0.6 of the time, 24 rows 0.8, 48 rows 1.0, 96 rows 1.07, 252 rows 1.24.
     */
    private static final int FEW_TILES = 4;

    /** Panels that stay in the second-level cache while a second sum reads them. */
    private static final int NEAR_PANELS = 4;

    /** Keeps rows whose length is a power of two from sharing places in the caches. */
    private static final long ROW_GAP_BYTES = 64;

    private final Tiles tiles;
    private final int tileRows;
    private final int tileCols;
    private final int maxDepth;
    private final int maxRows;
    private final int maxCols;
    private final long sumPitch;

    private final MemorySegment packed;
    private final MemorySegment staging;

    /** A panel in fp32, if B is of 16 bits. */
    private final MemorySegment widened;

    private final MemorySegment sums;
    private final Arguments arguments;
    private final RowConverter converter = new RowConverter();

    // The current block. In fields, since an object would be garbage.
    private Matrix a;
    private long aRow;
    private PackedB b;
    private boolean resume;
    private Matrix c;
    private long cRow;
    private long cCol;
    private int height;
    private int width;

    /** Rows and columns whose sums are in C from the start. */
    private int directRows;

    private int directCols;

    /**
     * For blocks of up to {@code maxRows} x {@code maxCols}, summed {@code maxDepth} at a time.
     *
     * @param maxRows whole tiles
     * @param maxCols whole panels
     */
    TiledBlock(Tiles tiles, int maxDepth, int maxRows, int maxCols, Arena arena) {
        this.tiles = tiles;
        this.tileRows = tiles.rows();
        this.tileCols = tiles.cols();
        this.maxDepth = maxDepth;
        this.maxRows = maxRows;
        this.maxCols = maxCols;
        this.sumPitch = (long) maxCols * Float.BYTES + ROW_GAP_BYTES;
        long tileBytes = maxRows / tileRows * tiles.tileBytes(maxDepth);
        long stagingBytes = (long) tileRows * maxDepth * Float.BYTES;
        // The last sums in place may write more rows than are wanted.
        long sumBytes = (maxRows + tiles.mostRowsInPlace()) * sumPitch;
        boolean keeps = tiles.keeps(DType.BF16);
        long widenedBytes = keeps ? tiles.panelBytes(DType.FP32, maxDepth) : 0;
        long before = tileBytes + stagingBytes + Arguments.BYTES;
        MemorySegment memory = LargePages.allocate(before + widenedBytes + sumBytes, arena);
        memory.fill((byte) 0);
        packed = memory.asSlice(0, tileBytes);
        staging = memory.asSlice(tileBytes, stagingBytes);
        arguments = new Arguments(memory.asSlice(tileBytes + stagingBytes, Arguments.BYTES));
        widened = memory.asSlice(before, widenedBytes);
        sums = memory.asSlice(before + widenedBytes);
    }

    /** The block behind {@code scratch}; refuses another engine's, or a smaller one. */
    static TiledBlock of(Scratch scratch, Tiles tiles, int depth, int rows, int cols) {
        TiledBlock own = Scratch.of(TiledBlock.class, scratch, tiles.name());
        if (own.tiles != tiles || own.maxDepth != depth) {
            throw new IllegalArgumentException(
                    "scratch of another engine: ask engine %s for scratch".formatted(tiles.name()));
        }
        if (own.maxRows < rows || own.maxCols < cols) {
            throw new IllegalArgumentException(
                    "scratch for %s rows of A and %s columns of B, the product needs %s and %s"
                            .formatted(own.maxRows, own.maxCols, rows, cols));
        }
        return own;
    }

    /** Whether a product reads rows of A where they are: B then has only one panel. */
    static boolean readsInPlace(Tiles tiles, Matrix a, PackedB b) {
        return tiles.mostRowsInPlace() > 0
                && b.n() <= tiles.cols()
                && b.k() >= Tiles.LEAST_DEPTH_IN_PLACE
                && a.data().isNative();
    }

    /**
     * Computes {@code height} x {@code width} elements of C from the given row and column on.
     *
     * @param depth how much of K is summed at a time; at most that of a block of B, unless A is
     *     read in place
     * @param resume whether to continue what C holds, which then is fp32 off the heap
     */
    void multiply(
            Matrix a,
            long aRow,
            PackedB b,
            long depth,
            boolean resume,
            Matrix c,
            long cRow,
            long cCol,
            int height,
            int width) {
        this.a = a;
        this.aRow = aRow;
        this.b = b;
        this.resume = resume;
        this.c = c;
        this.cRow = cRow;
        this.cCol = cCol;
        this.height = height;
        this.width = width;
        boolean inPlace = height >= tileRows && readsInPlace(tiles, a, b);
        int quantum = inPlace ? tiles.rowsInPlace(width) : tileRows;
        boolean direct = c.dtype() == DType.FP32 && c.data().isNative() && !c.data().isReadOnly();
        boolean wholeSteps = width % tiles.colStep() == 0;
        directRows = direct ? height - height % quantum : 0;
        directCols = direct ? wholeSteps ? width : width - width % tileCols : 0;
        if (resume) {
            widen(0, directRows, directCols);
            widen(directRows, height, 0);
        }
        // Parts of K, in order. A K of 0 still writes its zeros.
        long k = 0;
        do {
            long rest = b.k() - k;
            int part = (int) Math.min(depth, rest);
            if (inPlace) {
                int least = Tiles.LEAST_DEPTH_IN_PLACE;
                part = Math.max(part, least);
                part = rest - part < least ? (int) rest : part;
                sumInPlace(k, part, quantum);
            } else {
                pack(k, part);
                sumPacked(k, part);
            }
            k += part;
        } while (k < b.k());
        narrow(0, directRows, directCols);
        narrow(directRows, height, 0);
        // Scratch outlives operands.
        this.a = null;
        this.b = null;
        this.c = null;
    }

    /** Sums rows of A where they are with the only panel of B, whose blocks are adjacent. */
    private void sumInPlace(long k, int depth, int quantum) {
        long elements = (long) TILES_PER_CALL * tileRows * maxDepth;
        int most = Math.max(1, (int) (elements / depth / quantum)) * quantum;
        int count;
        for (int row = 0; row < height; row += count) {
            int whole = (height - row) / quantum * quantum;
            count = whole > 0 ? Math.min(whole, most) : height - row;
            boolean direct = row < directRows && directCols > 0;
            tiles.sumInPlace(
                    resume || k > 0,
                    a.dtype(),
                    a.data(),
                    a.offset(aRow + row, k),
                    a.rowPitch() * a.dtype().bytes(),
                    count,
                    depth,
                    b.panels(),
                    k * tileCols * Float.BYTES,
                    width,
                    direct ? c.data() : sums,
                    direct ? c.offset(cRow + row, cCol) : sumOffset(row, 0),
                    direct ? c.rowPitch() * Float.BYTES : sumPitch,
                    arguments);
        }
    }

    /** Sums the packed tiles with all panels, several of which are in one call. */
    private void sumPacked(long k, int depth) {
        int panels = Math.max(1, TILES_PER_CALL * tileRows / height);
        boolean widens = b.type() != tiles.type() && height > FEW_TILES * tileRows;
        if (widens) {
            panels = 1;
        } else if (height > tileRows && height % tileRows > 0) {
            panels = Math.min(panels, NEAR_PANELS);
        }
        int cols;
        for (int col = 0; col < width; col += cols) {
            int whole = Math.min(panels, (width - col) / tileCols);
            cols = whole > 0 ? whole * tileCols : width - col;
            long panel = b.panelOffset(k, depth, cCol + col);
            if (widens) {
                tiles.widen(b.type(), b.panels(), panel, depth, widened, arguments);
                sumPanels(k, depth, DType.FP32, widened, 0, col, cols);
            } else {
                sumPanels(k, depth, b.type(), b.panels(), panel, col, cols);
            }
        }
    }

    /** Sums the packed tiles with adjacent panels. */
    private void sumPanels(
            long k, int depth, DType type, MemorySegment panels, long panel, int col, int cols) {
        long tileBytes = tiles.tileBytes(depth);
        int row = 0;
        while (row < height) {
            int count = Math.clamp((height - row) / tileRows, 1, TILES_PER_CALL);
            boolean direct = row < directRows && col < directCols;
            tiles.sum(
                    resume || k > 0,
                    packed,
                    row / tileRows * tileBytes,
                    count,
                    Math.min(tileRows, height - row),
                    depth,
                    type,
                    panels,
                    panel,
                    cols,
                    direct ? c.data() : sums,
                    direct ? c.offset(cRow + row, cCol + col) : sumOffset(row, col),
                    direct ? c.rowPitch() * Float.BYTES : sumPitch,
                    arguments);
            row += count * tileRows;
        }
    }

    /** Packs all tiles of the block. */
    private void pack(long k, int depth) {
        MemorySegment source = a.data();
        long from = a.offset(aRow, k);
        long pitch = a.rowPitch() * a.dtype().bytes();
        if (source.isNative()) {
            tiles.pack(a.dtype(), source, from, pitch, height, depth, packed, 0, arguments);
            return;
        }
        long rowBytes = (long) depth * a.dtype().bytes();
        for (int row = 0; row < height; row += tileRows) {
            int rows = Math.min(tileRows, height - row);
            for (int r = 0; r < rows; r++) {
                long at = from + (row + r) * pitch;
                MemorySegment.copy(source, at, staging, r * rowBytes, rowBytes);
            }
            long tile = row / tileRows * tiles.tileBytes(depth);
            tiles.pack(a.dtype(), staging, 0, rowBytes, rows, depth, packed, tile, arguments);
        }
    }

    /** Copies C into sums in scratch: some rows, columns from {@code from} on. */
    private void widen(int fromRow, int toRow, int from) {
        for (int row = fromRow; row < toRow && from < width; row++) {
            converter.widen(c, cRow + row, cCol + from, width - from, sums, sumOffset(row, from));
        }
    }

    /** Rounds sums in scratch into C: some rows, columns from {@code from} on. */
    private void narrow(int fromRow, int toRow, int from) {
        for (int row = fromRow; row < toRow && from < width; row++) {
            converter.narrow(sums, sumOffset(row, from), width - from, c, cRow + row, cCol + from);
        }
    }

    private long sumOffset(int row, int col) {
        return row * sumPitch + (long) col * Float.BYTES;
    }
}
