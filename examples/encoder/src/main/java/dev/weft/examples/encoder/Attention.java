package dev.weft.examples.encoder;

import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * softmax(Q x K^T / sqrt(width)) x V of each sentence and head. The elements of a vector belong to
 * different queries, and each query sums over its keys in their order: the bits depend neither on
 * the length of vectors nor on what else is computed.
 */
final class Attention {

    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
    private static final int LANES = SPECIES.length();

    /** Queries at a time: four vectors. */
    private static final int BLOCK = 4 * LANES;

    /** Rows of a product that are summed at a time. */
    private static final int ROWS = 4;

    /** Between columns of V: not a power of two, whose multiples share few lines of a cache. */
    private static final int PITCH = Weights.LONGEST + 16;

    private static final int WIDTH = Weights.HEAD_WIDTH;
    private static final float SCALE = (float) (1 / Math.sqrt(WIDTH));

    // Of exp, after Cephes: e^x = 2^n e^r, with r at most ln(2) / 2 from zero.
    private static final float LEAST_EXPONENT = -87;
    private static final float LOG2_E = 1.44269504f;
    private static final float LN_2_HIGH = 0.693359375f;
    private static final float LN_2_LOW = -2.12194440e-4f;
    private static final float ROUNDER = 0x1.8p23f;
    private static final int MANTISSA_BITS = 23;
    private static final int BITS_OF_ONE = 0x3f800000;

    private static final ThreadLocal<Attention> OF_THREAD = ThreadLocal.withInitial(Attention::new);

    private final float[] row = new float[WIDTH];

    /** [key, column]. */
    private final float[] keys = new float[Weights.LONGEST * WIDTH];

    /** [column, key]. */
    private final float[] values = new float[WIDTH * PITCH];

    /** [column, query]. */
    private final float[] queries = new float[WIDTH * BLOCK];

    /** [key, query]. */
    private final float[] scores = new float[Weights.LONGEST * BLOCK];

    /** By query. */
    private final float[] factors = new float[BLOCK];

    /** [column, query]. */
    private final float[] mixed = new float[WIDTH * BLOCK];

    private Attention() {}

    /**
     * @param sentences the rows of each
     * @param qkv three matrices of [rows, columns of this rank's heads]
     */
    static void apply(List<Rows> sentences, List<Matrix> qkv, Matrix to) {
        int heads = (int) to.cols() / WIDTH;
        IntStream.range(0, sentences.size() * heads)
                .parallel()
                .forEach(
                        i ->
                                OF_THREAD
                                        .get()
                                        .head(
                                                sentences.get(i / heads),
                                                qkv,
                                                i % heads * WIDTH,
                                                to));
    }

    /** The rows of one sentence. */
    record Rows(int first, int count) {}

    private void head(Rows rows, List<Matrix> qkv, int column, Matrix to) {
        int count = rows.count();
        int padded = Math.ceilDiv(count, ROWS) * ROWS;
        for (int i = 0; i < padded; i++) {
            read(qkv.get(1), rows, i, column);
            System.arraycopy(row, 0, keys, i * WIDTH, WIDTH);
            read(qkv.get(2), rows, i, column);
            for (int d = 0; d < WIDTH; d++) {
                values[d * PITCH + i] = row[d];
            }
        }
        for (int from = 0; from < count; from += BLOCK) {
            for (int i = 0; i < BLOCK; i++) {
                read(qkv.get(0), rows, from + i, column);
                for (int d = 0; d < WIDTH; d++) {
                    queries[d * BLOCK + i] = row[d] * SCALE;
                }
            }
            multiply(keys, WIDTH, padded, WIDTH, queries, scores);
            for (int lane = 0; lane < BLOCK; lane += LANES) {
                softmax(scores, lane, count, factors);
            }
            multiply(values, PITCH, WIDTH, count, scores, mixed);
            write(to, rows.first() + from, Math.min(BLOCK, count - from), column);
        }
    }

    /** Zeros past the end of the sentence. */
    private void read(Matrix from, Rows rows, int index, int column) {
        if (index < rows.count()) {
            MemorySegment.copy(
                    from.data(),
                    ValueLayout.JAVA_FLOAT,
                    from.offset(rows.first() + (long) index, column),
                    row,
                    0,
                    WIDTH);
        } else {
            Arrays.fill(row, 0);
        }
    }

    private void write(Matrix to, int firstRow, int count, int column) {
        for (int i = 0; i < count; i++) {
            for (int d = 0; d < WIDTH; d++) {
                row[d] = mixed[d * BLOCK + i] * factors[i];
            }
            long at = to.offset(firstRow + (long) i, column);
            MemorySegment.copy(row, 0, to.data(), ValueLayout.JAVA_FLOAT, at, WIDTH);
        }
    }

    /**
     * C = A x B with {@link #BLOCK} columns, four rows at a time: sixteen sums, all in registers
     * where there are 32.
     */
    private static void multiply(float[] a, int pitch, int rows, int inner, float[] b, float[] c) {
        for (int row = 0; row < rows; row += ROWS) {
            FloatVector s00 = FloatVector.zero(SPECIES);
            FloatVector s01 = s00;
            FloatVector s02 = s00;
            FloatVector s03 = s00;
            FloatVector s10 = s00;
            FloatVector s11 = s00;
            FloatVector s12 = s00;
            FloatVector s13 = s00;
            FloatVector s20 = s00;
            FloatVector s21 = s00;
            FloatVector s22 = s00;
            FloatVector s23 = s00;
            FloatVector s30 = s00;
            FloatVector s31 = s00;
            FloatVector s32 = s00;
            FloatVector s33 = s00;
            int at0 = row * pitch;
            int at1 = at0 + pitch;
            int at2 = at1 + pitch;
            int at3 = at2 + pitch;
            for (int k = 0; k < inner; k++) {
                int at = k * BLOCK;
                FloatVector b0 = FloatVector.fromArray(SPECIES, b, at);
                FloatVector b1 = FloatVector.fromArray(SPECIES, b, at + LANES);
                FloatVector b2 = FloatVector.fromArray(SPECIES, b, at + 2 * LANES);
                FloatVector b3 = FloatVector.fromArray(SPECIES, b, at + 3 * LANES);
                FloatVector a0 = FloatVector.broadcast(SPECIES, a[at0 + k]);
                s00 = a0.fma(b0, s00);
                s01 = a0.fma(b1, s01);
                s02 = a0.fma(b2, s02);
                s03 = a0.fma(b3, s03);
                FloatVector a1 = FloatVector.broadcast(SPECIES, a[at1 + k]);
                s10 = a1.fma(b0, s10);
                s11 = a1.fma(b1, s11);
                s12 = a1.fma(b2, s12);
                s13 = a1.fma(b3, s13);
                FloatVector a2 = FloatVector.broadcast(SPECIES, a[at2 + k]);
                s20 = a2.fma(b0, s20);
                s21 = a2.fma(b1, s21);
                s22 = a2.fma(b2, s22);
                s23 = a2.fma(b3, s23);
                FloatVector a3 = FloatVector.broadcast(SPECIES, a[at3 + k]);
                s30 = a3.fma(b0, s30);
                s31 = a3.fma(b1, s31);
                s32 = a3.fma(b2, s32);
                s33 = a3.fma(b3, s33);
            }
            int at = row * BLOCK;
            store(s00, s01, s02, s03, c, at);
            store(s10, s11, s12, s13, c, at + BLOCK);
            store(s20, s21, s22, s23, c, at + 2 * BLOCK);
            store(s30, s31, s32, s33, c, at + 3 * BLOCK);
        }
    }

    private static void store(
            FloatVector v0, FloatVector v1, FloatVector v2, FloatVector v3, float[] to, int at) {
        v0.intoArray(to, at);
        v1.intoArray(to, at + LANES);
        v2.intoArray(to, at + 2 * LANES);
        v3.intoArray(to, at + 3 * LANES);
    }

    /** Of one vector of queries over all keys, but for the factors that make the sums 1. */
    private static void softmax(float[] scores, int lane, int keys, float[] factors) {
        FloatVector most = FloatVector.fromArray(SPECIES, scores, lane);
        for (int key = 1; key < keys; key++) {
            most = most.max(FloatVector.fromArray(SPECIES, scores, key * BLOCK + lane));
        }
        FloatVector sum = FloatVector.zero(SPECIES);
        for (int key = 0; key < keys; key++) {
            int at = key * BLOCK + lane;
            FloatVector power = exp(FloatVector.fromArray(SPECIES, scores, at).sub(most));
            power.intoArray(scores, at);
            sum = sum.add(power);
        }
        constant(1).div(sum).intoArray(factors, lane);
    }

    /** For exponents that are not positive; with nothing but operations that IEEE 754 defines. */
    private static FloatVector exp(FloatVector exponent) {
        FloatVector x = exponent.max(LEAST_EXPONENT);
        FloatVector rounded = constant(LOG2_E).fma(x, constant(ROUNDER));
        FloatVector n = rounded.sub(ROUNDER);
        FloatVector r = n.fma(constant(-LN_2_LOW), n.fma(constant(-LN_2_HIGH), x));
        FloatVector p =
                constant(1.9875691500e-4f)
                        .fma(r, constant(1.3981999507e-3f))
                        .fma(r, constant(8.3334519073e-3f))
                        .fma(r, constant(4.1665795894e-2f))
                        .fma(r, constant(1.6666665459e-1f))
                        .fma(r, constant(5.0000001201e-1f));
        p = p.fma(r.mul(r), r).add(1);
        // The rounder leaves n in the lowest bits.
        return p.mul(
                rounded.reinterpretAsInts()
                        .lanewise(VectorOperators.LSHL, MANTISSA_BITS)
                        .add(BITS_OF_ONE)
                        .reinterpretAsFloats());
    }

    private static FloatVector constant(float value) {
        return FloatVector.broadcast(SPECIES, value);
    }
}
