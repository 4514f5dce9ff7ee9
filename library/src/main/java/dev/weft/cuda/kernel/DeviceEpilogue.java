package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaModules;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.op.exec.EpilogueSteps.Kind;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * An operator's epilogue on its GPU: makes rows of results out of sums. The parts of all ranks are
 * added in rank order, the steps are applied, and the values are rounded once. The bits are those
 * of the CPU's epilogue. Nothing is allocated in a call. One thread at a time.
 */
public final class DeviceEpilogue implements AutoCloseable {

    /** As many as a launch can name. */
    private static final int MOST_PARTS = 64;

    private static final int THREADS = 256;
    private static final int MOST_GRID_ROWS = 65_535;

    /** Columns and rows that one thread makes. */
    private static final int THREAD_COLS = 4;

    private static final int THREAD_ROWS = 2;

    /** Of the block that finishes whole rows. */
    private static final int ROW_THREADS = 128;

    // Of the kernel's structure Finish.
    private static final int SOURCE_BYTES = 16;
    private static final long PRODUCT_BYTES = (long) MOST_PARTS * SOURCE_BYTES;
    private static final long BIASES_AT = 2 * PRODUCT_BYTES;
    private static final long RESIDUAL_AT = BIASES_AT + 16;
    private static final long TARGET_AT = RESIDUAL_AT + 16;
    private static final long NUMBERS_AT = TARGET_AT + 16;
    private static final long RESIDUAL_TYPE_AT = NUMBERS_AT + 20;
    private static final long VECTOR_AT = NUMBERS_AT + 28;
    private static final long BUSY_AT = NUMBERS_AT + 40;
    private static final long NORM_AT = BUSY_AT + 8;
    private static final long SCALING_AT = NORM_AT + 24;
    private static final long FINISH_BYTES = SCALING_AT + 8;
    private static final long PERIOD_BYTES = 16;

    private final EpilogueSteps steps;
    private final int encoded;
    private final long function;
    private final DeviceBuffer biases;
    private final long biasBytes;
    private DeviceMatrix residual;

    /**
     * Loads the kernel and copies the biases and a norm's operands to the GPU, which must be bound.
     *
     * @param resultRows rows of the result on this rank, and of the residual, in the first call
     */
    public DeviceEpilogue(Gpu gpu, EpilogueSteps steps, long resultRows) {
        this.steps = steps;
        int digits = 0;
        for (Kind kind : steps.kinds().reversed()) {
            digits = digits << 4 | kind.number();
        }
        this.encoded = digits;
        begin(resultRows);
        this.function =
                KernelCache.function(
                        gpu,
                        KernelVariants.finish(gpu.architecture()),
                        steps.takesWholeRows() ? "finish_rows" : "finish");
        List<float[]> copied = new ArrayList<>(steps.biases());
        if (steps.norm() != null) {
            copied.add(steps.norm().weight());
            if (steps.norm().bias() != null) {
                copied.add(steps.norm().bias());
            }
        }
        long longest = copied.stream().mapToLong(values -> values.length).max().orElse(0);
        this.biasBytes = DeviceMatrix.alignedBytes(DType.FP32, 1, longest);
        this.biases = DeviceBuffer.allocate(biasBytes * Math.max(1, copied.size()));
        try (Arena staging = Arena.ofConfined()) {
            for (int i = 0; i < copied.size(); i++) {
                CudaMemory.copyToDevice(
                        biases.address() + i * biasBytes,
                        staging.allocateFrom(JAVA_FLOAT, copied.get(i)));
            }
        }
    }

    /**
     * Asks for the residual of the call that is about to be queued, and refuses a wrong one.
     *
     * @param resultRows rows of the call's result on this rank
     */
    public void begin(long resultRows) {
        if (steps.residuals() == null) {
            return;
        }
        Object next = steps.residuals().get();
        if (!(next instanceof DeviceMatrix matrix
                && !matrix.dtype().isScaled()
                && matrix.rows() == resultRows
                && matrix.cols() == steps.cols())) {
            throw steps.wrongShape(
                    "residual is " + text(next),
                    "a DeviceMatrix [%d, %d]".formatted(resultRows, steps.cols()));
        }
        residual = matrix;
    }

    private static String text(Object residual) {
        return switch (residual) {
            case DeviceMatrix matrix -> matrix.describe();
            case Matrix matrix -> matrix.describe() + " in host memory";
            case null -> "null";
            default -> residual.toString();
        };
    }

    /** The columns of results that have {@code n} elements in a row. */
    public long resultCols(long n) {
        return steps.resultCols(n);
    }

    /**
     * Rows of a result, ready to be made again and again.
     *
     * @param product the number of the result
     * @param parts the sums of these rows, all fp32 or all bf16, of each rank in rank order
     * @param seconds those of the second product if two are joined; else none
     * @param target of any type
     * @param firstRow of these rows in the result, and in the residual
     */
    public Rows rows(
            int product,
            List<DeviceMatrix> parts,
            List<DeviceMatrix> seconds,
            DeviceMatrix target,
            long firstRow) {
        return new Rows(product, parts, seconds, target, firstRow);
    }

    /** Some rows of a result; see {@link #rows}. */
    public final class Rows implements AutoCloseable {

        private final Arena arena = Arena.ofShared();
        private final MemorySegment arguments = arena.allocate(FINISH_BYTES, 64);
        private final MemorySegment pointers = arena.allocate(JAVA_LONG);
        private final int product;
        private final int laneBits;
        private DeviceMatrix target;
        private long firstRow;
        private boolean aligned;

        /** When the latest launch began and ended; null if no times are kept. */
        private final DeviceBuffer busy;

        private Rows(
                int product,
                List<DeviceMatrix> parts,
                List<DeviceMatrix> seconds,
                DeviceMatrix target,
                long firstRow) {
            this.product = product;
            this.laneBits = laneBits(target.cols());
            set(parts, seconds, target, firstRow);
            pointers.set(JAVA_LONG, 0, arguments.address());
            this.busy = TileTimes.areKept() ? zeroes() : null;
            arguments.set(JAVA_LONG, BUSY_AT, busy == null ? 0 : busy.address());
            if (steps.norm() != null) {
                long weight = biases.address() + steps.biases().size() * biasBytes;
                arguments.set(JAVA_LONG, NORM_AT, weight);
                boolean layer = steps.norm().bias() != null;
                arguments.set(JAVA_LONG, NORM_AT + 8, layer ? weight + biasBytes : 0);
                arguments.set(JAVA_DOUBLE, NORM_AT + 16, steps.norm().epsilon());
            }
        }

        /** Other rows of the same result: see {@link DeviceEpilogue#rows}. */
        public void set(
                List<DeviceMatrix> parts, List<DeviceMatrix> seconds, DeviceMatrix to, long first) {
            check(parts, seconds, to);
            long cols = parts.getFirst().cols();
            checkWholeRows(parts.getFirst());
            this.target = to;
            this.firstRow = first;
            List<DeviceMatrix> all = new ArrayList<>(parts);
            all.addAll(seconds);
            all.add(target);
            this.aligned = all.stream().allMatch(Rows::isAligned);
            write(0, parts);
            write(PRODUCT_BYTES, seconds);
            for (int i = 0; i < 2 && product + i < steps.biases().size(); i++) {
                long bias = biases.address() + (product + i) * biasBytes;
                arguments.set(JAVA_LONG, BIASES_AT + 8L * i, bias);
            }
            arguments.set(JAVA_LONG, TARGET_AT, target.address());
            arguments.set(JAVA_LONG, TARGET_AT + 8, target.pitchBytes());
            int[] numbers = {
                parts.size(),
                seconds.isEmpty() ? 1 : 2,
                Math.toIntExact(target.rows()),
                Math.toIntExact(cols),
                encoded,
                0,
                target.dtype().ordinal(),
                aligned ? 1 : 0,
                laneBits,
                parts.getFirst().dtype().ordinal()
            };
            MemorySegment.copy(numbers, 0, arguments, JAVA_INT, NUMBERS_AT, numbers.length);
            if (steps.scaled() != null) {
                Scaling scaling = steps.scaled().scaling();
                arguments.set(JAVA_INT, SCALING_AT, scaling.ordinal());
                int at = Math.toIntExact(ScaledMatrix.valuesAt(cols, scaling));
                arguments.set(JAVA_INT, SCALING_AT + 4, at);
            }
        }

        private static DeviceBuffer zeroes() {
            try (GpuStream stream = GpuStream.create()) {
                return DeviceBuffer.zeroed(PERIOD_BYTES, stream);
            }
        }

        /** How many rows it makes. */
        public long rows() {
            return target.rows();
        }

        /** When the latest launch began and ended, by the device's clock; 0 before any. */
        public long[] busyNs() {
            return busy == null ? new long[2] : TileTimes.longs(busy);
        }

        private void check(
                List<DeviceMatrix> parts, List<DeviceMatrix> seconds, DeviceMatrix target) {
            int second = steps.joins() ? parts.size() : 0;
            List<DeviceMatrix> all = Stream.concat(parts.stream(), seconds.stream()).toList();
            boolean fit =
                    !parts.isEmpty()
                            && parts.size() <= MOST_PARTS
                            && seconds.size() == second
                            && all.stream().allMatch(part -> isPartOf(target, part))
                            && all.stream().map(DeviceMatrix::dtype).distinct().count() == 1;
            if (!fit) {
                throw steps.wrongShape(
                        "parts %s and %s of %s".formatted(parts, seconds, target.describe()),
                        "1 to %d parts of its shape, all fp32 or all bf16, and %s of a second product"
                                .formatted(MOST_PARTS, second == 0 ? "none" : second));
            }
        }

        private void checkWholeRows(DeviceMatrix sums) {
            if (steps.norm() != null && sums.cols() != steps.norm().weight().length) {
                throw steps.wrongShape(
                        "rows of %s to normalize".formatted(sums.describe()),
                        "%d columns".formatted(steps.norm().weight().length));
            }
        }

        private boolean isPartOf(DeviceMatrix target, DeviceMatrix part) {
            return (part.dtype() == DType.FP32 || part.dtype() == DType.BF16)
                    && part.rows() == target.rows()
                    && steps.resultCols(part.cols()) == target.cols();
        }

        /** Whether four elements are one load, at every fourth column of every row. */
        private static boolean isAligned(DeviceMatrix matrix) {
            long unit = (long) THREAD_COLS * matrix.dtype().bytes();
            return matrix.address() % unit == 0 && matrix.pitchBytes() % unit == 0;
        }

        private void write(long at, List<DeviceMatrix> parts) {
            for (int i = 0; i < parts.size(); i++) {
                long to = at + (long) i * SOURCE_BYTES;
                arguments.set(JAVA_LONG, to, parts.get(i).address());
                arguments.set(JAVA_LONG, to + 8, parts.get(i).pitchBytes());
            }
        }

        /** Queues the making of the rows behind what brings their sums. */
        public void launch(GpuStream stream) {
            if (target.rows() == 0 || target.cols() == 0) {
                return;
            }
            if (residual != null) {
                long from = residual.at(firstRow, 0);
                arguments.set(JAVA_LONG, RESIDUAL_AT, from);
                arguments.set(JAVA_LONG, RESIDUAL_AT + 8, residual.pitchBytes());
                arguments.set(JAVA_INT, RESIDUAL_TYPE_AT, residual.dtype().ordinal());
                boolean vector = aligned && isAligned(residual);
                arguments.set(JAVA_INT, VECTOR_AT, vector ? 1 : 0);
            }
            boolean wholeRows = steps.takesWholeRows();
            long units = Math.ceilDiv(target.cols(), THREAD_COLS);
            long blockRows = (wholeRows ? 1 : THREADS >> laneBits) * (long) THREAD_ROWS;
            CudaModules.launch(
                    function,
                    wholeRows ? 1 : Math.toIntExact(Math.ceilDiv(units, 1L << laneBits)),
                    (int) Math.min(MOST_GRID_ROWS, Math.ceilDiv(target.rows(), blockRows)),
                    wholeRows ? ROW_THREADS : THREADS,
                    0,
                    stream.handle(),
                    pointers,
                    1);
        }

        @Override
        public void close() {
            arena.close();
            if (busy != null) {
                busy.close();
            }
        }
    }

    /**
     * How a block's threads lie over columns and rows: as many side by side, of whole warps, as
     * leave at most a sixteenth of them idle.
     */
    static int laneBits(long cols) {
        long units = Math.ceilDiv(cols, THREAD_COLS);
        int bits = 8;
        while (bits > 5 && (Math.ceilDiv(units, 1L << bits) << bits) * 16 > units * 17) {
            bits--;
        }
        return bits;
    }

    @Override
    public void close() {
        biases.close();
    }
}
