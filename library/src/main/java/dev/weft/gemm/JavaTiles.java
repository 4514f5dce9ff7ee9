package dev.weft.gemm;

import dev.weft.gemm.code.Arguments;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;

/** Tiles of four rows in Java, for machines that Weft has no machine code for. */
abstract class JavaTiles implements Tiles {

    static final int ROWS = 4;
    static final long TILE_COLUMN_BYTES = ROWS * Float.BYTES;

    private final String name;
    private final int cols;

    JavaTiles(String name, int cols) {
        this.name = name;
        this.cols = cols;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final int rows() {
        return ROWS;
    }

    @Override
    public final int cols() {
        return cols;
    }

    @Override
    public final int colStep() {
        return cols;
    }

    @Override
    public final void pack(
            DType type,
            MemorySegment a,
            long from,
            long pitch,
            int count,
            int depth,
            MemorySegment packed,
            long to,
            Arguments arguments) {
        for (int row = 0; row < Blocking.roundUp(count, ROWS); row++) {
            long at = from + Math.min(row, count - 1) * pitch;
            long target = to + row / ROWS * tileBytes(depth) + (long) row % ROWS * Float.BYTES;
            for (int k = 0; k < depth; k++) {
                float value = type.read(a, at + (long) k * type.bytes());
                packed.set(RowConverter.FLOAT, target + k * TILE_COLUMN_BYTES, value);
            }
        }
    }

    @Override
    public final void sum(
            boolean resume,
            MemorySegment packed,
            long aFrom,
            int tileCount,
            int rowCount,
            int depth,
            DType panelType,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        long rowBytes = (long) cols * Float.BYTES;
        int panelCount = Math.max(1, colCount / cols);
        for (int panel = 0; panel < panelCount; panel++) {
            for (int tile = 0; tile < tileCount; tile++) {
                long at = sumsFrom + (long) tile * ROWS * pitch + panel * rowBytes;
                if (!resume) {
                    clear(sums, at, pitch, rowBytes);
                }
                long a = aFrom + (long) tile * depth * TILE_COLUMN_BYTES;
                long b = bFrom + panel * panelBytes(type(), depth);
                sumTile(packed, a, panels, b, depth, sums, at, pitch);
            }
        }
    }

    private static void clear(MemorySegment sums, long from, long pitch, long rowBytes) {
        for (int row = 0; row < ROWS; row++) {
            for (long at = 0; at < rowBytes; at += Float.BYTES) {
                sums.set(RowConverter.FLOAT, from + row * pitch + at, 0f);
            }
        }
    }

    /** Continues the sums of one tile; {@code row0} is the offset of its first one. */
    abstract void sumTile(
            MemorySegment a,
            long aFrom,
            MemorySegment b,
            long bFrom,
            int depth,
            MemorySegment sums,
            long row0,
            long pitch);
}
