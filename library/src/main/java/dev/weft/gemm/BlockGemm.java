package dev.weft.gemm;

import dev.weft.ffi.LargePages;
import dev.weft.gemm.code.Arguments;
import dev.weft.gemm.code.BlockCode;
import dev.weft.gemm.code.BlockKernel;
import dev.weft.gemm.code.BlockPanels;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The engine for a B in blocks: it quantizes rows of A ({@link RowQuantizer}) and multiplies whole
 * numbers ({@link BlockKernel}). Its bits are the same on every machine. Stateless and thread-safe.
 */
final class BlockGemm implements Gemm {

    /** Packed rows of A, which are read once for every few panels, stay in a near cache. */
    private static final long PACKED_BYTES = 512 * 1024;

    private static final int MOST_ROWS = 192;
    private static final int FULL_RATE_ROWS = 96;

    /** Panels of a call: they stay there too, if several tiles of rows are multiplied by them. */
    private static final int PANELS = 16;

    /** Likewise, of one tile; the garbage collector waits for a call, some 100 us. */
    private static final int PANELS_OF_ONE_TILE = 64;

    private final BlockKernel kernel;
    private final BlockPanels panels;

    BlockGemm(BlockKernel kernel, BlockType type) {
        this.kernel = kernel;
        this.panels = kernel.panels(type);
    }

    @Override
    public String name() {
        return panels.type().label() + "-" + kernel.name();
    }

    @Override
    public int rowQuantum() {
        return kernel.rows();
    }

    @Override
    public int colQuantum() {
        return kernel.cols();
    }

    @Override
    public long blockRows() {
        return FULL_RATE_ROWS;
    }

    @Override
    public int sumQuantum() {
        return panels.type().elements();
    }

    @Override
    public long packedBytes(long k, long n, DType type) {
        return panels.bytes(k, n);
    }

    @Override
    public PackedB packed(long k, long n, DType type, MemorySegment memory) {
        return new PackedB(
                k, n, kernel.cols(), BlockPanels.DEPTH, DType.FP32, false, panels, memory);
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return new Room(kernel, k, arena);
    }

    @Override
    public Object scratchKind() {
        return kernel;
    }

    /** Packed rows, and sums that are not made in C. */
    static final class Room implements Scratch {

        private final MemorySegment packed;
        private final MemorySegment sums;
        private final Arguments arguments;
        private final RowConverter converter = new RowConverter();
        private final RowQuantizer quantizer = new RowQuantizer();

        Room(BlockKernel kernel, long k, Arena arena) {
            long tile = Math.ceilDiv(k, BlockPanels.STEP) * BlockPanels.rowStepBytes(kernel.rows());
            long packedBytes = Math.max(PACKED_BYTES, tile) + BlockCode.SLACK_BYTES;
            long most = (long) PANELS * (MOST_ROWS + kernel.rows());
            long ofOne = (long) PANELS_OF_ONE_TILE * kernel.rows();
            long sumBytes = Math.max(most, ofOne) * kernel.cols() * Float.BYTES;
            MemorySegment memory =
                    LargePages.allocate(packedBytes + sumBytes + Arguments.BYTES, arena);
            packed = memory.asSlice(0, packedBytes);
            sums = memory.asSlice(packedBytes, sumBytes);
            arguments = new Arguments(memory.asSlice(packedBytes + sumBytes, Arguments.BYTES));
        }
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
        Gemm.check(a, aRow, rows, b, firstCol, cols, kernel.cols(), resume, c, cRow);
        b.requireBlocks(panels, name());
        Room room = Scratch.of(Room.class, scratch, name());
        long rowBytes = b.k() / BlockPanels.STEP * BlockPanels.rowStepBytes(1);
        if (rows == 0 || cols == 0 || b.k() == 0) {
            clear(resume ? 0 : rows, c, cRow, firstCol, cols);
            return;
        }
        int tileRows = kernel.rows();
        long packedBytes = room.packed.byteSize() - BlockCode.SLACK_BYTES;
        long most = packedBytes / rowBytes / tileRows * tileRows;
        if (most == 0) {
            throw new IllegalArgumentException(
                    "scratch for %s bytes of rows, the product needs %s"
                            .formatted(packedBytes, rowBytes * tileRows));
        }
        int height = Blocking.even(rows, (int) Math.min(most, MOST_ROWS), tileRows);
        for (long row = 0; row < rows; row += height) {
            int count = (int) Math.min(height, rows - row);
            multiply(a, aRow + row, count, b, firstCol, cols, resume, c, cRow + row, room);
        }
    }

    private static void clear(long rows, Matrix c, long cRow, long firstCol, long cols) {
        for (long row = 0; row < rows; row++) {
            for (long col = 0; col < cols; col++) {
                c.set(cRow + row, firstCol + col, 0);
            }
        }
    }

    /** A block of rows, which are packed together. */
    private void multiply(
            Matrix a,
            long aRow,
            int rows,
            PackedB b,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow,
            Room room) {
        int tileRows = Blocking.even(rows, kernel.rows(), 1);
        long steps = b.k() / BlockPanels.STEP;
        for (int row = 0; row < rows; row += tileRows) {
            int height = Math.min(tileRows, rows - row);
            long to = row * steps * BlockPanels.rowStepBytes(1);
            boolean whole = height >= kernel.wholeRowsFrom();
            room.quantizer.write(a, aRow + row, height, whole, panels, room.packed, to);
        }
        int panelCount = rows > tileRows ? PANELS : PANELS_OF_ONE_TILE;
        int width = panelCount * kernel.cols();
        boolean native32 = c.dtype() == DType.FP32 && c.data().isNative() && !c.data().isReadOnly();
        for (long col = firstCol; col < firstCol + cols; col += width) {
            int count = (int) Math.min(width, firstCol + cols - col);
            boolean direct = native32 && count % kernel.cols() == 0;
            if (resume && !direct) {
                move(true, c, cRow, col, rows, count, room);
            }
            for (long k = 0; k < b.k(); k += BlockPanels.DEPTH) {
                sum(
                        rows,
                        tileRows,
                        k,
                        b,
                        col,
                        count,
                        resume || k > 0,
                        direct ? c : null,
                        cRow,
                        room);
            }
            if (!direct) {
                move(false, c, cRow, col, rows, count, room);
            }
        }
    }

    /**
     * Multiplies a part of K.
     *
     * @param c null if sums are in scratch
     */
    private void sum(
            int rows,
            int tileRows,
            long fromK,
            PackedB b,
            long col,
            int cols,
            boolean resume,
            Matrix c,
            long cRow,
            Room room) {
        long steps = b.k() / BlockPanels.STEP;
        long pitch = c == null ? pitch(cols) : c.rowPitch() * Float.BYTES;
        for (int row = 0; row < rows; row += tileRows) {
            int height = Math.min(tileRows, rows - row);
            kernel.sum(
                    panels.type(),
                    resume,
                    Math.min(BlockPanels.DEPTH, b.k() - fromK),
                    room.packed,
                    row * steps * BlockPanels.rowStepBytes(1)
                            + fromK / BlockPanels.STEP * BlockPanels.rowStepBytes(height),
                    height,
                    b.panels(),
                    panels.offset(b.k(), b.n(), fromK, col),
                    Math.ceilDiv(cols, kernel.cols()),
                    c == null ? room.sums : c.data(),
                    c == null ? row * pitch : c.offset(cRow + row, col),
                    pitch,
                    room.arguments);
        }
    }

    /** Of rows of sums in scratch, which are whole panels. */
    private long pitch(int cols) {
        return (long) Blocking.roundUp(cols, kernel.cols()) * Float.BYTES;
    }

    /** Copies C into sums, or rounds sums into C. */
    private void move(boolean in, Matrix c, long cRow, long col, int rows, int cols, Room room) {
        for (int row = 0; row < rows; row++) {
            long at = row * pitch(cols);
            if (in) {
                room.converter.widen(c, cRow + row, col, cols, room.sums, at);
            } else {
                room.converter.narrow(room.sums, at, cols, c, cRow + row, col);
            }
        }
    }
}
