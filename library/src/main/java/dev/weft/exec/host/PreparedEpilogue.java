package dev.weft.exec.host;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.weft.gemm.RowConverter;
import dev.weft.gemm.code.Activations;
import dev.weft.gemm.code.EpilogueCode;
import dev.weft.gemm.code.EpilogueCode.Step;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.op.exec.EpilogueSteps.Kind;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

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

    private static final Set<Kind> ACTIVATIONS =
            EnumSet.of(Kind.GELU, Kind.GELU_TANH, Kind.SILU, Kind.SWIGLU);

    private final EpilogueSteps steps;
    private final Kind[] kinds;
    private final float[][] biases;

    /** Null if rows are not finished by machine code. */
    private final EpilogueCode code;

    /** The biases for it. */
    private final MemorySegment[] nativeBiases;

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
        this.code = code(steps);
        this.nativeBiases =
                steps.biases().stream()
                        .map(bias -> Arena.ofAuto().allocateFrom(JAVA_FLOAT, bias))
                        .toArray(MemorySegment[]::new);
        begin(rows);
    }

    /** For all steps but a norm, unless two products are joined after their first step. */
    private static EpilogueCode code(EpilogueSteps steps) {
        if (steps.scaled() != null || steps.kinds().indexOf(Kind.SWIGLU) > 0) {
            return null;
        }
        List<Step> coded =
                steps.kinds().stream()
                        .filter(kind -> kind != Kind.RMS_NORM && kind != Kind.LAYER_NORM)
                        .map(
                                kind ->
                                        kind == Kind.SWIGLU
                                                ? Step.SILU_TIMES
                                                : Step.valueOf(kind.name()))
                        .toList();
        return coded.isEmpty() ? null : EpilogueCode.of(coded);
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
                && isOfAnyThread(matrix)) {
            return matrix;
        }
        throw steps.wrongShape(
                "residual is " + (next instanceof Matrix matrix ? matrix.describe() : next),
                "[%d, %d], in memory that any thread may read".formatted(rows, steps.cols()));
    }

    /** Whether memory belongs to no thread alone. */
    static boolean isOfAnyThread(Matrix matrix) {
        return matrix.data().isAccessibleBy(OTHER_THREAD);
    }

    /** Whether the residual of the running call is in the memory of a result. */
    boolean readsFrom(Matrix result) {
        return residual != null && residual.data().asOverlappingSlice(result.data()).isPresent();
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

        /** Elements of a call of machine code: some 30 us. */
        private static final int MOST_CODED = 1 << 14;

        private static final long FLOAT_BYTES = Float.BYTES;

        private final EpilogueCode.Addresses at = new EpilogueCode.Addresses();
        private final RowConverter converter = new RowConverter();

        /** Null if there are none. */
        private final Activations activations =
                Arrays.stream(kinds).anyMatch(ACTIVATIONS::contains) ? new Activations() : null;

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
         * @param sums fp32, as wide as the target, unless that has scales in front; may be the
         *     target itself, from the same row on
         * @param sumsRow the first row there
         * @param second the sums of the second product if two are joined, else null
         * @param firstCol the first column, everywhere
         * @param targetRow the first row in the target, and in the residual
         */
        public void apply(
                int product,
                Matrix sums,
                long sumsRow,
                Matrix second,
                long secondRow,
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
            long coded = inMachineCode(sums, second, target) ? cols - cols % code.step() : 0;
            if (norm != null && coded < cols) {
                coded = 0;
            }
            for (long row = 0; row < rowCount; row++) {
                if (coded > 0) {
                    at.source = address(sums, sumsRow + row, firstCol);
                    at.factors = second == null ? 0 : address(second, secondRow + row, firstCol);
                    code(product, coded, firstCol, target, targetRow + row);
                }
                for (long done = norm == null ? coded : 0; done < cols; done += PIECE) {
                    int count = (int) Math.min(PIECE, cols - done);
                    long col = firstCol + done;
                    if (done < coded) {
                        converter.widen(target, targetRow + row, col, count, bytes[0], 0);
                    } else {
                        converter.widen(sums, sumsRow + row, col, count, bytes[0], 0);
                        if (second != null) {
                            converter.widen(second, secondRow + row, col, count, bytes[1], 0);
                        }
                        steps(product, second == null ? 1 : 2, targetRow + row, col, count);
                    }
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
            // Machine code knows their addresses alone.
            Reference.reachabilityFence(sums);
            Reference.reachabilityFence(second);
            Reference.reachabilityFence(PreparedEpilogue.this);
        }

        private boolean inMachineCode(Matrix sums, Matrix second, Matrix target) {
            return code != null
                    && isInReach(sums)
                    && isInReach(target)
                    && (second == null || isInReach(second))
                    && (residual == null || isInReach(residual));
        }

        private static boolean isInReach(Matrix matrix) {
            return matrix.dtype() == DType.FP32 && matrix.data().isNative();
        }

        private static long address(Matrix matrix, long row, long col) {
            return matrix.data().address() + matrix.offset(row, col);
        }

        /** Finishes columns of a row, whose sums are where {@link #at} says. */
        private void code(int product, long cols, long firstCol, Matrix target, long row) {
            at.target = address(target, row, firstCol);
            at.bias =
                    nativeBiases.length == 0
                            ? 0
                            : nativeBiases[product].address() + firstCol * Float.BYTES;
            at.residual = residual == null ? 0 : address(residual, row, firstCol);
            // Only the residual's memory is not the operator's own.
            MemorySegment base = residual == null ? target.data() : residual.data();
            for (long done = 0; done < cols; done += MOST_CODED) {
                int count = (int) Math.min(MOST_CODED, cols - done);
                code.apply(base, at, target.data(), count);
                at.source += count * FLOAT_BYTES;
                at.factors += count * FLOAT_BYTES;
                at.bias += count * FLOAT_BYTES;
                at.residual += count * FLOAT_BYTES;
                at.target += count * FLOAT_BYTES;
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
