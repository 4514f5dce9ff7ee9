package dev.weft.exec.host;

import dev.weft.gemm.RowConverter;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.op.exec.EpilogueSteps.Kind;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import java.lang.foreign.MemorySegment;

/**
 * An epilogue with the operands of one operator: the biases, and the residual of the running call.
 * The caller begins a call before the workers start; each worker applies it with its own {@link
 * Scratch}.
 */
public final class PreparedEpilogue {

    /**
     * Never started: stands in for the workers when checking whether memory is confined to a
     * thread.
     */
    private static final Thread OTHER_THREAD = new Thread();

    private final EpilogueSteps steps;
    private final Kind[] kinds;
    private final float[][] biases;
    private Matrix residual;

    /**
     * Refuses a residual that does not fit.
     *
     * @param rows the result's rows on this rank
     */
    public PreparedEpilogue(EpilogueSteps steps, long rows) {
        this.steps = steps;
        this.kinds = steps.kinds().toArray(Kind[]::new);
        this.biases = steps.biases().toArray(float[][]::new);
        begin(rows);
    }

    /**
     * Gets the residual of the call that is about to start, and refuses a wrong one.
     *
     * @param rows the result's rows on this rank
     */
    public void begin(long rows) {
        if (steps.residuals() == null) {
            return;
        }
        Object next = steps.residuals().get();
        if (next == null || next != residual || residual.rows() != rows) {
            residual = checked(next, rows);
        }
    }

    /** The matrix, if it is [rows, columns] and workers can read it. */
    private Matrix checked(Object next, long rows) {
        if (next instanceof Matrix matrix
                && matrix.rows() == rows
                && matrix.cols() == steps.cols()
                && matrix.data().isAccessibleBy(OTHER_THREAD)) {
            return matrix;
        }
        throw steps.wrongShape(
                "residual is " + (next instanceof Matrix matrix ? matrix.describe() : next),
                "[%d, %d], in memory that any thread may read".formatted(rows, steps.cols()));
    }

    /** Whether only whole rows can be finished. */
    boolean takesWholeRows() {
        return steps.takesWholeRows();
    }

    /** Whether sums are more than just rounded. */
    boolean hasSteps() {
        return !steps.isNone();
    }

    /** Applies the epilogue; for one thread. */
    public final class Scratch {

        private static final int PIECE = Activations.PIECE;

        private final RowConverter converter = new RowConverter();
        private final Activations activations = new Activations();

        // For one product, or for the two that are joined.
        private final float[][] values = new float[2][PIECE];
        private final MemorySegment[] bytes = {
            MemorySegment.ofArray(values[0]), MemorySegment.ofArray(values[1])
        };
        private final float[] added = new float[PIECE];
        private final MemorySegment addedBytes = MemorySegment.ofArray(added);

        /** Null if rows are not normalized. */
        private final RowNorm norm = steps.norm() == null ? null : new RowNorm(steps.norm());

        /** A whole row; null if parts of rows are finished. */
        private final float[] whole =
                norm != null
                        ? norm.row()
                        : steps.scaled() == null ? null : new float[steps.scaled().mostCols()];

        private final MemorySegment wholeBytes =
                whole == null ? null : MemorySegment.ofArray(whole);

        /**
         * Turns sums into finished rows. The columns may be done in any parts, unless rows are
         * normalized or scaled: then all at once. Allocates nothing.
         *
         * @param product the number of the result
         * @param sums fp32, as wide as the target, unless that has scales in front
         * @param second the sums of the second product if two are joined, else null
         * @param sumsRow the first row in both
         * @param firstCol the first column, everywhere
         * @param targetRow the first row in the target, and in the residual
         */
        public void apply(
                int product,
                Matrix sums,
                Matrix second,
                long sumsRow,
                long rowCount,
                long firstCol,
                long cols,
                Matrix target,
                long targetRow) {
            if (norm != null && cols != norm.cols()) {
                throw new IllegalArgumentException(
                        "%d columns of a row to normalize: expected all %d"
                                .formatted(cols, norm.cols()));
            }
            for (long row = 0; row < rowCount; row++) {
                for (long done = 0; done < cols; done += PIECE) {
                    int count = (int) Math.min(PIECE, cols - done);
                    long col = firstCol + done;
                    converter.widen(sums, sumsRow + row, col, count, bytes[0], 0);
                    if (second != null) {
                        converter.widen(second, sumsRow + row, col, count, bytes[1], 0);
                    }
                    steps(product, second == null ? 1 : 2, targetRow + row, col, count);
                    if (norm != null) {
                        norm.take(values[0], count, (int) done);
                    } else if (whole != null) {
                        System.arraycopy(values[0], 0, whole, (int) done, count);
                    } else {
                        converter.narrow(bytes[0], 0, count, target, targetRow + row, col);
                    }
                }
                if (whole != null) {
                    finish((int) cols, target, targetRow + row);
                }
            }
        }

        private void finish(int cols, Matrix target, long row) {
            if (norm != null) {
                norm.normalize();
            }
            if (steps.scaled() == null) {
                converter.narrow(wholeBytes, 0, cols, target, row, 0);
            } else {
                ScaledMatrix.quantizeRow(whole, cols, steps.scaled().scaling(), target, row);
            }
        }

        private void steps(int product, int products, long row, long col, int count) {
            int left = products;
            for (Kind kind : kinds) {
                if (kind == Kind.SWIGLU) {
                    activations.siluTimes(values[0], values[1], count);
                    left = 1;
                    continue;
                }
                for (int p = 0; p < left; p++) {
                    step(kind, values[p], product + p, row, col, count);
                }
            }
        }

        private void step(Kind kind, float[] into, int product, long row, long col, int count) {
            switch (kind) {
                case BIAS -> add(biases[product], (int) col, into, count);
                case RELU -> Activations.relu(into, count);
                case GELU -> activations.gelu(into, count);
                case GELU_TANH -> activations.geluTanh(into, count);
                case SILU -> activations.silu(into, count);
                case RESIDUAL -> {
                    converter.widen(residual, row, col, count, addedBytes, 0);
                    add(added, 0, into, count);
                }
                case RMS_NORM, LAYER_NORM -> {
                    // Once the row is whole.
                }
                case SWIGLU -> throw new AssertionError("joins two products");
            }
        }

        private static void add(float[] source, int from, float[] into, int count) {
            for (int i = 0; i < count; i++) {
                into[i] += source[from + i];
            }
        }
    }
}
