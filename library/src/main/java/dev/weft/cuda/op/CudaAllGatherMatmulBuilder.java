package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.fabric.Fabric;
import dev.weft.op.OperatorBuilder;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Shards;
import dev.weft.search.AutoChoice;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/** Describes a {@link CudaAllGatherMatmul}. */
public final class CudaAllGatherMatmulBuilder
        extends OperatorBuilder<DeviceMatrix, CudaAllGatherMatmulBuilder> {

    private final CudaGroup group;
    private CudaEngine engine = CudaEngine.GATED;
    private UnaryOperator<DeviceProduct> wrapper = UnaryOperator.identity();
    private CopyStreams.Hook hook = CopyStreams.Hook.NONE;

    CudaAllGatherMatmulBuilder(Fabric fabric, Gpu gpu, int rank) {
        super(fabric == null ? 0 : fabric.size());
        this.group = new CudaGroup(fabric, gpu, rank);
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
        if (group.rank < 0 || group.rank >= shards.ranks()) {
            throw new IllegalArgumentException(
                    "rank %d of shards for %d ranks".formatted(group.rank, shards.ranks()));
        }
        if (shards.totalRows() > CudaGroup.MAX_ROWS) {
            throw new IllegalArgumentException(
                    "%d rows: expected at most %d on a GPU"
                            .formatted(shards.totalRows(), CudaGroup.MAX_ROWS));
        }
        return super.a(shards, dtype);
    }

    /** A right-hand side in host memory, [K, N], or [N, K] if {@code transposed}; it is copied. */
    public CudaAllGatherMatmulBuilder b(Matrix b, boolean transposed) {
        group.bs.add(new DeviceOperands.B(b, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * A right-hand side in device memory, which must stay; it is read in place if its rows are
     * aligned to 16 bytes, and copied otherwise.
     */
    @Override
    public CudaAllGatherMatmulBuilder b(DeviceMatrix b, boolean transposed) {
        group.bs.add(new DeviceOperands.B(b, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * A right-hand side with scales, in host memory, [K, N], or [N, K] if {@code transposed}; it is
     * copied.
     */
    public CudaAllGatherMatmulBuilder b(ScaledMatrix b, boolean transposed) {
        Matrix values = b.values();
        group.bs.add(new DeviceOperands.B(b, transposed));
        return side(values.describe(), values.dtype(), values.rows(), values.cols(), transposed);
    }

    /** A right-hand side that other operators on the GPU may use as well. */
    public CudaAllGatherMatmulBuilder b(CudaWeights weights) {
        group.add(weights);
        return side(
                weights.text(),
                weights.dtype(),
                weights.rows(),
                weights.cols(),
                weights.transposed());
    }

    @Override
    public CudaAllGatherMatmulBuilder engine(String name) {
        this.engine = CudaEngine.named(name);
        return this;
    }

    /** The longest wait for a chunk; by default that of the fabric, or 30 s. */
    public CudaAllGatherMatmulBuilder deadline(Duration limit) {
        group.deadline(limit);
        return this;
    }

    /**
     * Rows go through host memory, as between hosts, even if the ranks could reach each other's
     * GPUs: for GPUs of one host that cannot, and to try on one host what several do.
     */
    public CudaAllGatherMatmulBuilder staged() {
        group.stage();
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

    /** Agrees with the other ranks, loads kernels and reserves memory. Collective. */
    @Override
    public CudaAllGatherMatmul prepare() {
        return group.prepare(this::prepareAgreed);
    }

    private CudaAllGatherMatmul prepareAgreed() {
        Description wanted = description();
        checkOperands(wanted);
        CudaPlanning planning =
                new CudaPlanning(
                        group.fabric, group.isStaged(), group.gpu, group.rank, engine, wanted);
        EpilogueSteps steps = epilogueSteps();
        planning.agree(steps);
        DeviceOperands shared = new DeviceOperands();
        CudaAllGatherMatmul operator;
        try (GpuStream stream = GpuStream.create()) {
            reserve(shared, wanted, steps, stream);
            GatherAssembly.Testing testing = new GatherAssembly.Testing(wrapper, hook);
            Function<GatherWriter, CudaAllGatherMatmul> operators =
                    algorithm ->
                            new GatherAssembly(
                                            group,
                                            planning,
                                            algorithm,
                                            shared,
                                            productType(wanted),
                                            testing)
                                    .operator();
            if (wanted.algorithm() != Algorithm.AUTO || wanted.gathersOnly()) {
                // With nothing to multiply meanwhile, each rank gets what it lacks.
                GatherWriter only =
                        wanted.algorithm() == Algorithm.AUTO
                                ? Algorithm.MESH_PULL
                                : wanted.gather();
                operator = operators.apply(only);
                operator.adopt(List.of(shared), List.of());
            } else {
                operator = chosen(planning, steps, operators, stream, shared);
            }
        } catch (RuntimeException | Error e) {
            shared.close();
            throw e;
        }
        return withFewerRows(operator, planning);
    }

    /** What {@code auto} chooses. */
    private CudaAllGatherMatmul chosen(
            CudaPlanning planning,
            EpilogueSteps steps,
            Function<GatherWriter, CudaAllGatherMatmul> operators,
            GpuStream stream,
            DeviceOperands shared) {
        String settings =
                "%s %s %s %s %s %s"
                        .formatted(
                                group.gpu.name(),
                                engine,
                                group.isStaged(),
                                group.rank,
                                steps.text(),
                                // Products with blocks take other times.
                                group.bs.stream().map(b -> "" + b.blocks()).toList());
        AutoChoice.Choice<CudaAllGatherMatmul> choice =
                new AutoChoice(group.fabric, planning.problem(), settings)
                        .choose(
                                planning::prices,
                                trial(
                                        one -> operators.apply((GatherWriter) one.algorithm()),
                                        shard -> group.fill(shard, ORDINARY, stream)));
        CudaAllGatherMatmul operator =
                choice.prepared() == null
                        ? operators.apply((GatherWriter) choice.chosen().algorithm())
                        : choice.prepared();
        operator.adopt(List.of(shared), choice.candidates());
        return operator;
    }

    /** Room for products and results, and the Bs. */
    private void reserve(
            DeviceOperands shared, Description wanted, EpilogueSteps steps, GpuStream stream) {
        long m = wanted.shards().totalRows();
        DType type = productType(wanted);
        for (int i = 0; i < group.bs.size(); i++) {
            DeviceOperands.B b = group.bs.get(i);
            long n = wanted.columns().get(i);
            shared.add(b, wanted.scaling(), type, m, n, stream);
        }
        if (hasEpilogue()) {
            DeviceEpilogue epilogue = new DeviceEpilogue(group.gpu, steps, m);
            shared.finish(epilogue, steps.joins(), wanted.outType(), stream);
        } else {
            shared.finish();
        }
    }

    /**
     * A caller's own algorithm need not have plans for any number of rows. Closes the operator if
     * they cannot be made.
     */
    private CudaAllGatherMatmul withFewerRows(CudaAllGatherMatmul operator, CudaPlanning planning) {
        try {
            if (operator.plan().algorithm() instanceof Algorithm) {
                operator.addFewerRows(planning, productType(planning.wanted()));
            }
            return operator;
        } catch (RuntimeException | Error e) {
            if (group.fabric != null) {
                // Before it is closed, which would wait for peers that prepare.
                group.fabric.fail(e);
            }
            operator.close();
            throw e;
        }
    }

    /** An epilogue is applied to sums in fp32. */
    private DType productType(Description wanted) {
        return hasEpilogue() ? DType.FP32 : wanted.outType();
    }

    private void checkOperands(Description wanted) {
        if (wanted.scaling() != null && engine != CudaEngine.GATED) {
            throw new IllegalArgumentException(
                    "A of e4m3 with engine cublas: expected engine gated");
        }
        for (CudaWeights weights : group.weights.values()) {
            weights.checkScaling(wanted.scaling());
            if (engine != CudaEngine.GATED) {
                weights.requireNoBlocks("engine cublas");
            }
        }
        if (!wanted.gathersOnly() && wanted.scaling() == null) {
            group.checkTypes(wanted.aType(), productType(wanted), wanted.columns());
        }
    }
}
