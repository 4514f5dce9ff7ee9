package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.DeviceOperands.B;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;

/**
 * A right-hand side in memory of its own on a GPU, copied there once and then read by any number of
 * operators on that GPU, as {@code b(weights)}. They may differ in rows, epilogue, algorithm,
 * engine, fabric and kind. What it was made from may be freed.
 *
 * <p>It must outlive its operators. Ranks that are threads may use one object; each process has its
 * own copy, even where several share a GPU. Any thread may use it.
 */
public final class CudaWeights implements AutoCloseable {

    private final Gpu gpu;
    private final String text;
    private final long rows;
    private final long cols;
    private final boolean transposed;

    /** Of A; null if there are no scales. */
    private final Scaling scaling;

    private final DeviceOperands memory = new DeviceOperands();
    private final Set<CudaOperator> users = new HashSet<>();

    /** How many operators are being prepared. */
    private int preparing;

    /** Whether peers that did not come when an operator was closed may still read the memory. */
    private boolean mayBeRead;

    private boolean closed;

    private CudaWeights(Gpu gpu, B b, String text, long rows, long cols, Scaling scaling) {
        this.gpu = Objects.requireNonNull(gpu, "gpu");
        this.text = text;
        this.rows = rows;
        this.cols = cols;
        this.transposed = b.transposed();
        this.scaling = scaling;
        gpu.bind();
        try (GpuStream stream = GpuStream.create()) {
            memory.addB(b, scaling, true, stream);
        } catch (RuntimeException | Error e) {
            memory.close();
            throw e;
        }
    }

    /** Copies [K, N], or [N, K] if {@code transposed}, from host memory; fp16 or bf16. */
    public static CudaWeights copyOf(Gpu gpu, Matrix b, boolean transposed) {
        requireUnscaled(b.dtype(), b.describe());
        return new CudaWeights(gpu, new B(b, transposed), b.describe(), b.rows(), b.cols(), null);
    }

    /**
     * Copies [K, N], or [N, K] if {@code transposed}, from device memory, whatever its alignment;
     * fp16 or bf16. What writes it must have ended.
     */
    public static CudaWeights copyOf(Gpu gpu, DeviceMatrix b, boolean transposed) {
        requireUnscaled(b.dtype(), b.describe());
        return new CudaWeights(gpu, new B(b, transposed), b.describe(), b.rows(), b.cols(), null);
    }

    /**
     * Copies a matrix with scales from host memory.
     *
     * @param ofA the scales of A in all operators; tensor and row are the same here
     */
    public static CudaWeights copyOf(Gpu gpu, ScaledMatrix b, boolean transposed, Scaling ofA) {
        Matrix values = b.values();
        return new CudaWeights(
                gpu,
                new B(b, transposed),
                values.describe(),
                values.rows(),
                values.cols(),
                Objects.requireNonNull(ofA, "ofA"));
    }

    /**
     * Copies a matrix in blocks, [N, K], from host memory. Rows of A are fp16 or bf16, and are
     * multiplied with the blocks' own values: unlike on CPUs, they are not quantized. For few rows,
     * which take as long as the blocks take to be read; any number can be multiplied. Needs compute
     * capability 9.0, engine gated, and gathers alone.
     *
     * @param b of a type of {@link BlockType#MULTIPLIED}
     */
    public static CudaWeights copyOf(Gpu gpu, QuantizedMatrix b) {
        if (!BlockType.MULTIPLIED.contains(b.type())) {
            throw new IllegalArgumentException(
                    "weights %s: expected q8_0, q4_0 or q4_k".formatted(b.describe()));
        }
        GatedKernel.requireBlocks(gpu, b.type());
        return new CudaWeights(gpu, new B(b), b.describe(), b.rows(), b.cols(), null);
    }

    /** Bytes on the GPU. */
    public long bytes() {
        return memory.bytes();
    }

    /**
     * Copies another matrix of the same shape and type, and stored the same way, into the same
     * memory. When this returns, all operators multiply by it, and so do launches of graphs with
     * their calls. Not collective: with sums over ranks, each rank replaces its own rows of B
     * before its next call.
     *
     * <p>No call of these operators may be under way, which is refused, and no launch of a graph,
     * which is not noticed: synchronize first. No thread may start a call meanwhile.
     */
    public void replace(Matrix b) {
        requireUnscaled(b.dtype(), b.describe());
        replace(new B(b, transposed), b.describe());
    }

    /**
     * Likewise from device memory, whatever its alignment. What writes it must have ended.
     *
     * @see #replace(Matrix)
     */
    public void replace(DeviceMatrix b) {
        requireUnscaled(b.dtype(), b.describe());
        replace(new B(b, transposed), b.describe());
    }

    /**
     * Likewise with scales.
     *
     * @see #replace(Matrix)
     */
    public void replace(ScaledMatrix b) {
        replace(new B(b, transposed), b.values().describe());
    }

    /**
     * Likewise in blocks.
     *
     * @see #replace(Matrix)
     */
    public void replace(QuantizedMatrix b) {
        replace(new B(b), b.describe());
    }

    private synchronized void replace(B b, String other) {
        checkOpen();
        if (preparing > 0) {
            throw new IllegalStateException(
                    "weights of an operator that is being prepared: replace them afterwards");
        }
        if (!other.equals(text)) {
            throw new IllegalArgumentException(
                    "the B of these weights is to be replaced by %s: expected %s, as it was given"
                            .formatted(other, text));
        }
        gpu.bind();
        users.forEach(CudaOperator::awaitBsUnread);
        try (GpuStream stream = GpuStream.create()) {
            memory.replaceFirst(b, scaling, stream);
        }
    }

    /** Frees the memory; refused while an operator uses it. */
    @Override
    public synchronized void close() {
        if (!users.isEmpty() || preparing > 0) {
            throw new IllegalStateException(
                    "weights that %d operators use: close those first"
                            .formatted(users.size() + preparing));
        }
        if (!closed) {
            closed = true;
            if (!mayBeRead) {
                gpu.bind();
                memory.close();
            }
        }
    }

    private static void requireUnscaled(DType type, String text) {
        if (type.isScaled()) {
            throw new IllegalArgumentException(
                    "weights %s without scales: expected a ScaledMatrix".formatted(text));
        }
    }

    /** An operator is being prepared: the memory stays until {@link #letGo}. */
    synchronized void hold() {
        checkOpen();
        preparing++;
    }

    synchronized void letGo() {
        preparing--;
    }

    synchronized void usedBy(CudaOperator operator) {
        users.add(operator);
    }

    /**
     * @param stillRead whether peers may go on reading the memory
     */
    synchronized void leftBy(CudaOperator operator, boolean stillRead) {
        users.remove(operator);
        mayBeRead |= stillRead;
    }

    private void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the weights are closed");
        }
    }

    void checkIsOn(Gpu wanted) {
        if (wanted != gpu) {
            throw new IllegalArgumentException(
                    "weights %s on GPU %d, in an operator on GPU %d: expected the same"
                            .formatted(text, gpu.ordinal(), wanted.ordinal()));
        }
    }

    /** Refuses an A whose scales are laid out in another way than these expect. */
    void checkScaling(Scaling ofA) {
        if ((scaling == Scaling.BLOCK) != (ofA == Scaling.BLOCK)) {
            throw new IllegalArgumentException(
                    "weights %s for A with scales by %s, in an operator with A with scales by %s: expected the same"
                            .formatted(text, scaling.label(), ofA.label()));
        }
    }

    /** Refuses those in blocks. */
    void requireNoBlocks(String what) {
        if (operand().blocks() != null) {
            throw new IllegalArgumentException(
                    "weights %s in %s: expected fp16 or bf16".formatted(text, what));
        }
    }

    B operand() {
        return new B(memory, transposed);
    }

    String text() {
        return text;
    }

    DType dtype() {
        return memory.b(0).dtype();
    }

    long rows() {
        return rows;
    }

    long cols() {
        return cols;
    }

    boolean transposed() {
        return transposed;
    }
}
