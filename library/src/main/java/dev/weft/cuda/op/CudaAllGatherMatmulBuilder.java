package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.exec.CudaEngine;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaMemory;
import dev.weft.op.OperatorBuilder;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.op.exec.OperatorTrial;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.process.WaitTime;
import dev.weft.search.AutoChoice;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.UnaryOperator;

/** Describes a {@link CudaAllGatherMatmul}. */
public final class CudaAllGatherMatmulBuilder
        extends OperatorBuilder<DeviceMatrix, CudaAllGatherMatmulBuilder> {

    /** Rows of gathered A and of C are counted with 32 bits on the device. */
    static final long MAX_ROWS = Integer.MAX_VALUE;

    private final Transport fabric;
    private final Gpu gpu;
    private final int rank;
    private final List<DeviceOperands.Side> operands = new ArrayList<>();
    private CudaEngine engine = CudaEngine.GATED;
    private Duration deadline = Duration.ofSeconds(30);
    private boolean staged;
    private UnaryOperator<DeviceProduct> wrapper = UnaryOperator.identity();
    private CopyStreams.Hook hook = CopyStreams.Hook.NONE;

    CudaAllGatherMatmulBuilder(Fabric fabric, Gpu gpu, int rank) {
        super(fabric == null ? 0 : fabric.size());
        this.fabric = fabric == null ? null : Transport.of(fabric);
        this.gpu = gpu;
        this.rank = fabric == null ? rank : fabric.rank();
        if (fabric != null) {
            this.deadline = fabric.deadline();
        }
    }

    @Override
    protected CudaAllGatherMatmulBuilder self() {
        return this;
    }

    /**
     * How the rows of A are spread over the ranks, and the type of A's elements: fp16 or bf16, or
     * with {@link #scaledA} e4m3; any type for a gather without a product.
     */
    @Override
    public CudaAllGatherMatmulBuilder a(Shards shards, DType dtype) {
        if (rank < 0 || rank >= shards.ranks()) {
            throw new IllegalArgumentException(
                    "rank %d of shards for %d ranks".formatted(rank, shards.ranks()));
        }
        if (shards.totalRows() > MAX_ROWS) {
            throw new IllegalArgumentException(
                    "%d rows: expected at most %d on a GPU"
                            .formatted(shards.totalRows(), MAX_ROWS));
        }
        return super.a(shards, dtype);
    }

    /** A right-hand side in host memory, [K, N], or [N, K] if {@code transposed}; it is copied. */
    public CudaAllGatherMatmulBuilder b(Matrix b, boolean transposed) {
        operands.add(new DeviceOperands.Side(b, null, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * A right-hand side in device memory, which must stay; it is read in place if its rows are
     * aligned to 16 bytes, and copied otherwise.
     */
    @Override
    public CudaAllGatherMatmulBuilder b(DeviceMatrix b, boolean transposed) {
        operands.add(new DeviceOperands.Side(null, b, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * A right-hand side with scales, in host memory, [K, N], or [N, K] if {@code transposed}; it is
     * copied.
     */
    public CudaAllGatherMatmulBuilder b(ScaledMatrix b, boolean transposed) {
        Matrix values = b.values();
        operands.add(new DeviceOperands.Side(null, b, null, transposed));
        return side(values.describe(), values.dtype(), values.rows(), values.cols(), transposed);
    }

    @Override
    public CudaAllGatherMatmulBuilder engine(String name) {
        this.engine = CudaEngine.named(name);
        return this;
    }

    /** The longest wait for a chunk; by default that of the fabric, or 30 s. */
    public CudaAllGatherMatmulBuilder deadline(Duration limit) {
        this.deadline = checkedDeadline(limit);
        return this;
    }

    static Duration checkedDeadline(Duration limit) {
        if (limit.isNegative() || limit.isZero()) {
            throw new IllegalArgumentException("deadline " + limit + ": expected more than zero");
        }
        return limit;
    }

    /**
     * Rows go through host memory, as between hosts, even if the ranks could reach each other's
     * GPUs: for GPUs of one host that cannot, and to try on one host what several do.
     */
    public CudaAllGatherMatmulBuilder staged() {
        if (fabric == null) {
            throw new IllegalArgumentException(
                    "staged ranks with peers in host memory: expected ranks of a fabric");
        }
        this.staged = true;
        return this;
    }

    /** For tests, which hold products back. */
    CudaAllGatherMatmulBuilder products(UnaryOperator<DeviceProduct> wrap) {
        this.wrapper = wrap;
        return this;
    }

    /** For tests, which hold copies back. */
    CudaAllGatherMatmulBuilder copies(CopyStreams.Hook with) {
        this.hook = with;
        return this;
    }

    private boolean isStaged() {
        return fabric != null && fabric.size() > 1 && (staged || !fabric.sharesMemory());
    }

    /** Agrees with the other ranks, loads kernels and reserves memory. Collective. */
    @Override
    public CudaAllGatherMatmul prepare() {
        try {
            return prepareAgreed();
        } catch (RuntimeException | Error e) {
            if (fabric != null) {
                fabric.fail(e);
            }
            throw e;
        }
    }

    private CudaAllGatherMatmul prepareAgreed() {
        Description wanted = description();
        checkOperands(wanted);
        gpu.bind();
        CudaPlanning planning = new CudaPlanning(fabric, isStaged(), gpu, rank, engine, wanted);
        EpilogueSteps steps = epilogueSteps();
        planning.agree(steps);
        CudaAllGatherMatmulFactory factory =
                new CudaAllGatherMatmulFactory(
                        fabric,
                        gpu,
                        rank,
                        engine,
                        isStaged(),
                        WaitTime.nanoseconds(deadline),
                        operands,
                        productType(wanted),
                        wrapper,
                        hook);
        DeviceOperands shared = new DeviceOperands();
        try (GpuStream stream = GpuStream.create()) {
            long m = wanted.shards().totalRows();
            for (int i = 0; i < operands.size(); i++) {
                long n = wanted.columns().get(i);
                DType type = productType(wanted);
                if (wanted.scaling() == null) {
                    shared.add(operands.get(i), type, m, n, stream);
                } else {
                    long k = innerSize(operands.get(i));
                    shared.addScaled(operands.get(i), wanted.scaling(), type, m, k, n, stream);
                }
            }
            if (hasEpilogue()) {
                DeviceEpilogue epilogue = new DeviceEpilogue(gpu, steps, m);
                shared.finish(epilogue, steps.joins(), wanted.outType(), stream);
            } else {
                shared.finish();
            }
            if (wanted.plans() != null || wanted.algorithm() != Algorithm.AUTO) {
                return adopt(factory.operator(planning, wanted.algorithm(), shared), shared);
            }
            if (wanted.gathersOnly()) {
                // With nothing to multiply meanwhile, each rank gets what it lacks.
                return adopt(factory.operator(planning, Algorithm.MESH_PULL, shared), shared);
            }
            String settings =
                    "%s %s %s %s %s".formatted(gpu.name(), engine, isStaged(), rank, steps.text());
            AutoChoice.Choice<CudaAllGatherMatmul> choice =
                    new AutoChoice(fabric, planning.problem(), settings)
                            .choose(
                                    planning::prices,
                                    new OperatorTrial<>(
                                            one ->
                                                    factory.operator(
                                                            planning, one.algorithm(), shared),
                                            shard -> fill(shard, stream)));
            CudaAllGatherMatmul operator =
                    choice.prepared() == null
                            ? factory.operator(planning, choice.chosen().algorithm(), shared)
                            : choice.prepared();
            operator.adopt(List.of(shared), choice.candidates());
            return operator;
        } catch (RuntimeException | Error e) {
            shared.close();
            throw e;
        }
    }

    private static CudaAllGatherMatmul adopt(CudaAllGatherMatmul operator, DeviceOperands shared) {
        operator.adopt(List.of(shared), List.of());
        return operator;
    }

    /** K of a B with scales. */
    private static long innerSize(DeviceOperands.Side b) {
        Matrix values = b.scaled().values();
        return b.transposed() ? values.cols() : values.rows();
    }

    /** An epilogue is applied to sums in fp32. */
    private DType productType(Description wanted) {
        return hasEpilogue() ? DType.FP32 : wanted.outType();
    }

    /** Something to multiply in a trial. All ranks meet afterwards, since this needs the GPU. */
    private void fill(DeviceMatrix shard, GpuStream stream) {
        long bytes = shard.rows() * shard.pitchBytes();
        if (bytes > 0) {
            CudaMemory.fill8Async(shard.address(), OperatorTrial.ORDINARY, bytes, stream.handle());
            stream.synchronize();
        }
        if (fabric != null) {
            fabric.barrier();
        }
    }

    static void closeAll(Deque<AutoCloseable> made, Throwable cause) {
        for (AutoCloseable part : made) {
            try {
                part.close();
            } catch (Exception e) {
                cause.addSuppressed(e);
            }
        }
    }

    private void checkOperands(Description wanted) {
        if (wanted.scaling() != null && engine != CudaEngine.GATED) {
            throw new IllegalArgumentException(
                    "A of e4m3 with engine cublas: expected engine gated");
        }
        if (!wanted.gathersOnly() && wanted.scaling() == null) {
            checkTypes(wanted.aType(), productType(wanted), wanted.columns(), operands);
        }
    }

    /** Refuses what no kernel multiplies. */
    static void checkTypes(
            DType aType, DType outType, List<Long> columns, List<DeviceOperands.Side> operands) {
        if (aType == DType.FP32) {
            throw new IllegalArgumentException(
                    "A of fp32 on the GPU: expected fp16 or bf16 (fp32 runs on the CPU)");
        }
        if (outType != DType.FP32 && outType != aType) {
            throw new IllegalArgumentException(
                    "output of %s for inputs of %s: expected fp32 or the inputs' type"
                            .formatted(outType.label(), aType.label()));
        }
        for (int i = 0; i < operands.size(); i++) {
            DType type = operands.get(i).dtype();
            if (type != aType || columns.get(i) < 1) {
                throw new IllegalArgumentException(
                        "B number %d is %s with N = %d: expected %s and N of at least 1"
                                .formatted(i, type.label(), columns.get(i), aType.label()));
            }
        }
    }
}
