package dev.weft.gemm;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

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
final class VectorTiles extends JavaTiles {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
    private static final long VECTOR_BYTES = SPECIES.vectorByteSize();
    private static final long PANEL_ROW_BYTES = 2 * VECTOR_BYTES;

    VectorTiles() {
        super("vector-" + SPECIES.vectorBitSize(), 2 * SPECIES.length());
    }

    @Override
    void sumTile(
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
