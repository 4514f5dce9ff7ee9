package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Arrays;

/**
 * The engine on the Vector API: five loops around a {@link MicroKernel} for this machine's vector
 * width. Needs the module {@code jdk.incubator.vector}; load this class only where it is there (see
 * {@link Gemms}). Stateless, any thread may call it.
 *
 * <p>Sums stay in fp32 scratch from the first block of K to the last and a kernel continues them,
 * so that blocking never changes the order of additions. The result leaves scratch once, rounded to
 * C's type.
 */
public final class VectorGemm implements Gemm {

    private static final int DEPTH = MicroKernel.DEPTH;

    /** Rows of A that are multiplied with a panel of B while it lies in a cache close by. */
    private static final int MAX_BLOCK_ROWS = 128;

    /** Bounds the sums: with these rows they fit a common second-level cache. */
    private static final int MAX_BLOCK_COLS = 1024;

    private final MicroKernel kernel;
    private final int tileRows;
    private final int tileCols;
    private final String name;

    public VectorGemm() {
        this(MicroKernel.preferred());
    }

    VectorGemm(MicroKernel kernel) {
        this.kernel = kernel;
        this.tileRows = kernel.rows();
        this.tileCols = kernel.cols();
        this.name = "vector-" + kernel.vectorBits();
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public int rowQuantum() {
        return tileRows;
    }

    @Override
    public long blockRows() {
        return MAX_BLOCK_ROWS / 2;
    }

    @Override
    public PackedB pack(Matrix b, boolean transposed, Arena arena) {
        return PackedB.pack(b, transposed, tileCols, DEPTH, arena);
    }

    /** The memory is on the heap and bounded, whatever K; {@code arena} is not used. */
    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return new VectorScratch(MAX_BLOCK_ROWS, DEPTH, sumCols(n));
    }

    @Override
    public void multiply(
            Matrix a, long aRow, long rows, PackedB b, Matrix c, long cRow, Scratch scratch) {
        Gemm.check(a, aRow, rows, b, c, cRow);
        b.requireLayout(tileCols, DEPTH, name);
        VectorScratch own = VectorScratch.of(scratch, sumCols(b.n()));
        int blockRows = evenBlock(rows, MAX_BLOCK_ROWS, tileRows);
        int blockCols = evenBlock(b.n(), MAX_BLOCK_COLS, tileCols);
        // Loops 1 and 2: blocks of C, each finished before the next begins.
        for (long row = 0; row < rows; row += blockRows) {
            int height = (int) Math.min(blockRows, rows - row);
            for (long col = 0; col < b.n(); col += blockCols) {
                int width = (int) Math.min(blockCols, b.n() - col);
                clearSums(own, height, width);
                sumBlock(a, aRow + row, height, b, col, width, own);
                storeSums(own, height, width, c, cRow + row, col);
            }
        }
    }

    private void sumBlock(
            Matrix a,
            long aRow,
            int height,
            PackedB b,
            long col,
            int width,
            VectorScratch scratch) {
        // Loop 3: blocks of K, in order; a row of A is converted once for all columns of the block.
        for (long k = 0; k < b.k(); k += DEPTH) {
            int depth = (int) Math.min(DEPTH, b.k() - k);
            for (int row = 0; row < height; row++) {
                long offset = (long) row * DEPTH * Float.BYTES;
                scratch.converter().widen(a, aRow + row, k, depth, scratch.rowsView(), offset);
            }
            sumTiles(b, k, depth, col, width, height, scratch);
        }
    }

    /**
     * One depth of all tiles of a block. A method of its own, left after every block: a
     * long-running loop around a kernel was seen to go on calling it interpreted although compiled
     * code was there.
     */
    private void sumTiles(
            PackedB b,
            long k,
            int depth,
            long fromCol,
            int width,
            int height,
            VectorScratch scratch) {
        int pitch = scratch.sumCols();
        // Loop 4: panels of B.
        for (int col = 0; col < width; col += tileCols) {
            long panel = b.panelOffset(k, depth, fromCol + col);
            // Loop 5: tiles down the block. The last one may hold rows of an earlier product: they
            // give sums that nobody reads.
            for (int row = 0; row < height; row += tileRows) {
                kernel.accumulate(
                        scratch.rows(),
                        row * DEPTH,
                        b.panels(),
                        panel,
                        depth,
                        scratch.sums(),
                        row * pitch + col,
                        pitch);
            }
        }
    }

    private void clearSums(VectorScratch scratch, int height, int width) {
        int pitch = scratch.sumCols();
        int paddedWidth = roundUp(width, tileCols);
        for (int row = 0; row < roundUp(height, tileRows); row++) {
            Arrays.fill(scratch.sums(), row * pitch, row * pitch + paddedWidth, 0f);
        }
    }

    private static void storeSums(
            VectorScratch scratch, int height, int width, Matrix c, long cRow, long col) {
        for (int row = 0; row < height; row++) {
            long offset = (long) row * scratch.sumCols() * Float.BYTES;
            scratch.converter().narrow(scratch.sumsView(), offset, width, c, cRow + row, col);
        }
    }

    private int sumCols(long n) {
        return roundUp((int) Math.min(n, MAX_BLOCK_COLS), tileCols);
    }

    /** The size of the fewest equal blocks of at most {@code max}, so that no sliver is left. */
    private static int evenBlock(long total, int max, int quantum) {
        long blocks = Math.max(1, Math.ceilDiv(total, max));
        return Math.max(quantum, roundUp((int) Math.ceilDiv(total, blocks), quantum));
    }

    private static int roundUp(int value, int quantum) {
        return Math.ceilDiv(value, quantum) * quantum;
    }
}
