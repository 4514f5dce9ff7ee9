package dev.weft.gemm;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.weft.gemm.code.Arguments;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Tiles of 4 rows x 2 vectors on the Vector API, for machines that Weft has no machine code for: 8
 * sums keep two pipes of latency 4 busy, and with 2 vectors of B and 4 of A they fit 16 registers.
 * Needs the module {@code jdk.incubator.vector}; load this class only if it is present (see {@link
 * Gemms}).
 *
 * <p>Sums are separate local variables: in an array or a field, vectors become heap objects and the
 * product runs a hundred times slower. A test detects that.
 */
final class VectorTiles implements Tiles {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
    private static final String NAME = "vector-" + SPECIES.vectorBitSize();
    private static final int ROWS = 4;
    private static final int COLS = 2 * SPECIES.length();
    private static final long VECTOR_BYTES = SPECIES.vectorByteSize();
    private static final long PANEL_ROW_BYTES = 2 * VECTOR_BYTES;
    private static final long TILE_COLUMN_BYTES = ROWS * Float.BYTES;

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public int rows() {
        return ROWS;
    }

    @Override
    public int cols() {
        return COLS;
    }

    @Override
    public int colStep() {
        return COLS;
    }

    @Override
    public void pack(
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
                float value =
                        switch (type) {
                            case FP32 -> a.get(RowConverter.FLOAT, at + k * 4L);
                            case FP16 ->
                                    Float.float16ToFloat(a.get(RowConverter.SHORT, at + k * 2L));
                            case BF16 ->
                                    Float.intBitsToFloat(
                                            a.get(RowConverter.SHORT, at + k * 2L) << 16);
                            case E4M3, E5M2 -> throw new IllegalArgumentException(type.label());
                        };
                packed.set(RowConverter.FLOAT, target + k * TILE_COLUMN_BYTES, value);
            }
        }
    }

    @Override
    public void sum(
            boolean resume,
            MemorySegment packed,
            long aFrom,
            int tileCount,
            int rowCount,
            int depth,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        int panelCount = Math.max(1, colCount / cols());
        for (int panel = 0; panel < panelCount; panel++) {
            for (int tile = 0; tile < tileCount; tile++) {
                long at = sumsFrom + (long) tile * ROWS * pitch + (long) panel * PANEL_ROW_BYTES;
                if (!resume) {
                    clear(sums, at, pitch);
                }
                sumTile(
                        packed,
                        aFrom + (long) tile * depth * TILE_COLUMN_BYTES,
                        panels,
                        bFrom + panel * panelBytes(depth),
                        depth,
                        sums,
                        at,
                        pitch);
            }
        }
    }

    private static void clear(MemorySegment sums, long from, long pitch) {
        for (int row = 0; row < ROWS; row++) {
            for (long at = 0; at < PANEL_ROW_BYTES; at += Float.BYTES) {
                sums.set(RowConverter.FLOAT, from + row * pitch + at, 0f);
            }
        }
    }

    private static void sumTile(
            MemorySegment a,
            long aFrom,
            MemorySegment b,
            long bFrom,
            int depth,
            MemorySegment sums,
            long row0,
            long pitch) {
        long row1 = row0 + pitch;
        long row2 = row1 + pitch;
        long row3 = row2 + pitch;
        FloatVector s00 = load(sums, row0);
        FloatVector s01 = load(sums, row0 + VECTOR_BYTES);
        FloatVector s10 = load(sums, row1);
        FloatVector s11 = load(sums, row1 + VECTOR_BYTES);
        FloatVector s20 = load(sums, row2);
        FloatVector s21 = load(sums, row2 + VECTOR_BYTES);
        FloatVector s30 = load(sums, row3);
        FloatVector s31 = load(sums, row3 + VECTOR_BYTES);
        for (int k = 0; k < depth; k++) {
            long aAt = aFrom + k * TILE_COLUMN_BYTES;
            FloatVector b0 = load(b, bFrom + k * PANEL_ROW_BYTES);
            FloatVector b1 = load(b, bFrom + k * PANEL_ROW_BYTES + VECTOR_BYTES);
            FloatVector a0 = broadcast(a, aAt);
            s00 = a0.fma(b0, s00);
            s01 = a0.fma(b1, s01);
            FloatVector a1 = broadcast(a, aAt + 4);
            s10 = a1.fma(b0, s10);
            s11 = a1.fma(b1, s11);
            FloatVector a2 = broadcast(a, aAt + 8);
            s20 = a2.fma(b0, s20);
            s21 = a2.fma(b1, s21);
            FloatVector a3 = broadcast(a, aAt + 12);
            s30 = a3.fma(b0, s30);
            s31 = a3.fma(b1, s31);
        }
        store(s00, sums, row0);
        store(s01, sums, row0 + VECTOR_BYTES);
        store(s10, sums, row1);
        store(s11, sums, row1 + VECTOR_BYTES);
        store(s20, sums, row2);
        store(s21, sums, row2 + VECTOR_BYTES);
        store(s30, sums, row3);
        store(s31, sums, row3 + VECTOR_BYTES);
    }

    private static FloatVector load(MemorySegment from, long at) {
        return FloatVector.fromMemorySegment(SPECIES, from, at, LITTLE_ENDIAN);
    }

    private static FloatVector broadcast(MemorySegment from, long at) {
        return FloatVector.broadcast(SPECIES, from.get(RowConverter.FLOAT, at));
    }

    private static void store(FloatVector vector, MemorySegment to, long at) {
        vector.intoMemorySegment(to, at, LITTLE_ENDIAN);
    }
}
