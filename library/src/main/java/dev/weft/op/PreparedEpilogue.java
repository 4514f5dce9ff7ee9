package dev.weft.op;

import dev.weft.gemm.RowConverter;
import dev.weft.op.Epilogue.Kind;
import dev.weft.op.Epilogue.Step;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * An epilogue with the operands of one operator: the biases, and the residual of the call under
 * way. The caller begins a call before the workers start; each worker applies it with a {@link
 * Scratch} of its own.
 */
final class PreparedEpilogue {

    private final Epilogue epilogue;
    private final Kind[] kinds;

    /** By product; null where there is none. */
    private final float[][] biases;

    private final Supplier<Matrix> residuals;
    private final long rows;
    private final long residualCols;
    private Matrix residual;

    /**
     * Refuses what does not fit.
     *
     * @param columns N of each B
     * @param rows of the result on this rank
     */
    PreparedEpilogue(Epilogue epilogue, List<Long> columns, long rows) {
        epilogue.check(columns, rows);
        this.epilogue = epilogue;
        this.rows = rows;
        this.residualCols = columns.isEmpty() ? 0 : columns.getFirst();
        this.kinds = epilogue.steps().stream().map(Step::kind).toArray(Kind[]::new);
        Step bias = step(Kind.BIAS);
        boolean joined =
                bias != null
                        && epilogue.steps().stream()
                                .takeWhile(step -> step != bias)
                                .anyMatch(step -> step.kind() == Kind.SWIGLU);
        this.biases =
                bias == null
                        ? null
                        : IntStream.range(0, joined ? 1 : columns.size())
                                .mapToObj(product -> Epilogue.biasOf(bias, product))
                                .toArray(float[][]::new);
        Step added = step(Kind.RESIDUAL);
        this.residuals = added == null ? null : added.operands().getFirst();
    }

    private Step step(Kind kind) {
        return epilogue.steps().stream().filter(s -> s.kind() == kind).findFirst().orElse(null);
    }

    /** Asks for the residual of the call that is about to start, and refuses a wrong one. */
    void begin() {
        if (residuals == null) {
            return;
        }
        Matrix next = residuals.get();
        if (next != residual) {
            epilogue.checkResidual(next, rows, residualCols);
            residual = next;
        }
    }

    /** Applies the epilogue; for one thread. */
    final class Scratch {

        private static final int PIECE = Activations.PIECE;

        private final RowConverter converter = new RowConverter();
        private final Activations activations = new Activations();

        // Of one product, or of the two that are to be joined.
        private final float[][] values = new float[2][PIECE];
        private final MemorySegment[] bytes = {
            MemorySegment.ofArray(values[0]), MemorySegment.ofArray(values[1])
        };
        private final float[] added = new float[PIECE];
        private final MemorySegment addedBytes = MemorySegment.ofArray(added);

        /**
         * Makes finished rows of sums. The columns may be done in any parts. Allocates nothing.
         *
         * @param product the number of the result
         * @param sums fp32, as wide as the target
         * @param second the sums of the second product where two are joined; else null
         * @param sumsRow the first row in both
         * @param firstCol the first column, everywhere
         * @param targetRow the first row in the target, and in the residual
         */
        void apply(
                int product,
                Matrix sums,
                Matrix second,
                long sumsRow,
                long rowCount,
                long firstCol,
                long cols,
                Matrix target,
                long targetRow) {
            for (long row = 0; row < rowCount; row++) {
                for (long done = 0; done < cols; done += PIECE) {
                    int count = (int) Math.min(PIECE, cols - done);
                    long col = firstCol + done;
                    converter.widen(sums, sumsRow + row, col, count, bytes[0], 0);
                    if (second != null) {
                        converter.widen(second, sumsRow + row, col, count, bytes[1], 0);
                    }
                    steps(product, second == null ? 1 : 2, targetRow + row, col, count);
                    converter.narrow(bytes[0], 0, count, target, targetRow + row, col);
                }
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
