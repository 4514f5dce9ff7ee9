package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * The engine on the Vector API: five loops around a {@link MicroKernel} for this machine's vector
 * width. Needs the module {@code jdk.incubator.vector}; load this class only where it is there (see
 * {@link Gemms}). Stateless, any thread may call it.
 *
 * <p>Sums stay in fp32 scratch from the first block of K to the last and a kernel continues them,
 * so that blocking never changes the order of additions. A tile's sums are cleared just before its
 * first kernel and leave scratch just after its last, rounded to C's type, while they are in the
 * first-level cache.
 */
final class VectorGemm implements Gemm {

    private static final int DEPTH = MicroKernel.DEPTH;

    private final MicroKernel kernel;
    private final int tileRows;
    private final int tileCols;
    private final Blocking blocking;
    private final String name;

    VectorGemm() {
        this(MicroKernel.preferred());
    }

    VectorGemm(MicroKernel kernel) {
        this(kernel, Blocking.of(kernel));
    }

    VectorGemm(MicroKernel kernel, Blocking blocking) {
        this.kernel = kernel;
        this.blocking = blocking;
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

    /** Fewer rows would read B more often than the caches like (see {@link Blocking}). */
    @Override
    public long blockRows() {
        return roundUp(blocking.rows(), tileRows);
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

    /** The memory is on the heap and bounded, whatever K; {@code arena} is not used. */
    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return VectorScratch.allocate(kernel, roundUp(blocking.rows(), tileRows), sumCols(n));
    }

    @Override
    public void multiply(
            Matrix a, long aRow, long rows, PackedB b, Matrix c, long cRow, Scratch scratch) {
        Gemm.check(a, aRow, rows, b, c, cRow);
        b.requireLayout(tileCols, DEPTH, name);
        VectorScratch own = VectorScratch.of(scratch, sumCols(b.n()));
        int blockRows = evenBlock(rows, blocking.rowsFor(b, kernel), tileRows);
        int blockCols = evenBlock(b.n(), blocking.cols(), tileCols);
        // Loops 1 and 2: blocks of C, each finished before the next begins.
        for (long row = 0; row < rows; row += blockRows) {
            int height = (int) Math.min(blockRows, rows - row);
            for (long col = 0; col < b.n(); col += blockCols) {
                int width = (int) Math.min(blockCols, b.n() - col);
                // Loop 3: blocks of K, in order. A K of nothing still writes its zeros.
                long k = 0;
                do {
                    int depth = (int) Math.min(DEPTH, b.k() - k);
                    sumTiles(a, aRow + row, height, b, k, depth, col, width, c, cRow + row, own);
                    k += depth;
                } while (k < b.k());
            }
        }
    }

    /**
     * One depth of all tiles of a block. A method of its own, left after every block: a
     * long-running loop around a kernel was seen to go on calling it interpreted although compiled
     * code was there.
     */
    private void sumTiles(
            Matrix a,
            long aRow,
            int height,
            PackedB b,
            long k,
            int depth,
            long fromCol,
            int width,
            Matrix c,
            long cRow,
            VectorScratch scratch) {
        boolean first = k == 0;
        boolean last = k + depth == b.k();
        boolean far = blocking.isFar(b);
        float[] sums = scratch.sums();
        int at = 0;
        // Loop 4: panels of B.
        for (int col = 0; col < width; col += tileCols) {
            int cols = Math.min(tileCols, width - col);
            long panel = b.panelOffset(k, depth, fromCol + col);
            MicroKernel fitting = kernel.forCols(cols);
            if (far) {
                scratch.touch(b.panels(), panel, (long) depth * tileCols * Float.BYTES);
            }
            int tile = 0;
            // Loop 5: tiles down the block.
            for (int row = 0; row < height; ) {
                boolean enough = row + fitting.rows() <= height;
                MicroKernel chosen = enough ? fitting : kernel;
                int rows = Math.min(chosen.rows(), height - row);
                int floats = chosen.rows() * tileCols;
                if (col == 0) {
                    // Just before its first use, which then finds it in the nearest cache: packing
                    // ran at 26 GB/s so, and at 13 with the whole block packed beforehand.
                    packRows(a, aRow + row, rows, k, depth, scratch, tile);
                }
                if (first) {
                    Arrays.fill(sums, at, at + floats, 0f);
                }
                chosen.accumulate(scratch.tiles(), tile, b.panels(), panel, depth, sums, at);
                if (last) {
                    chosen.finish(sums, at);
                    scratch.converter()
                            .narrow(sums, at, tileCols, rows, cols, c, cRow + row, fromCol + col);
                }
                tile += chosen.rows() / tileRows * kernel.packedTile();
                at += floats;
                row += chosen.rows();
            }
        }
    }

    /** Packs the tiles of some rows. */
    private void packRows(
            Matrix a, long aRow, int height, long k, int depth, VectorScratch scratch, int tile) {
        boolean stages = kernel.stages();
        float[] target = stages ? scratch.staging() : scratch.tiles();
        int at = tile;
        for (int first = 0; first < height; first += tileRows, at += kernel.packedTile()) {
            int rows = Math.min(tileRows, height - first);
            for (int row = 0; row < rows; row++) {
                int to = (stages ? 0 : at) + row * DEPTH;
                scratch.converter().widen(a, aRow + first + row, k, depth, target, to);
            }
            if (stages) {
                kernel.packTile(target, depth, scratch.tiles(), at);
            }
        }
    }

    private int sumCols(long n) {
        return roundUp((int) Math.min(n, blocking.cols()), tileCols);
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
