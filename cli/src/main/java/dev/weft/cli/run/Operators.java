package dev.weft.cli.run;

import dev.weft.cli.data.BlockOperands;
import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.Operands;
import dev.weft.cli.data.QuantizedOperands;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RunRequest;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.cuda.op.CudaMatmulReduceBuilder;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Epilogue;
import dev.weft.op.MatmulAllReduce;
import dev.weft.op.MatmulBuilder;
import dev.weft.op.MatmulReduceBuilder;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Operator;
import dev.weft.op.OperatorBuilder;
import dev.weft.op.ReduceBuilder;
import dev.weft.op.Weights;
import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.cut.Cut;
import dev.weft.tensor.Matrix;
import java.util.List;

/**
 * Turns a request into one rank's operators: the one place that chooses their builders.
 *
 * @param algorithm the requested one, or sequential
 */
record Operators(RunRequest request, Operands operands, int rank, String algorithm, Order order) {

    static Operators of(RunRequest request, Operands operands, int rank) {
        return new Operators(
                request,
                operands,
                rank,
                request.execution().algorithm(),
                request.execution().order());
    }

    /** Those without overlap; if they sum, they add by rank. */
    Operators sequential() {
        return new Operators(
                request,
                operands,
                rank,
                Algorithm.SEQUENTIAL.label(),
                order == Order.BY_RANK_BF16 ? order : Order.BY_RANK);
    }

    private ProblemSpec problem() {
        return request.problem();
    }

    /** On the CPU. */
    Operator<Matrix> onHost(
            Transport world, Fabric group, Epilogue epilogue, boolean keepGathered) {
        if (problem().gathers()) {
            AllGatherMatmulBuilder builder = gatherOnHost(world, group, epilogue);
            return (keepGathered ? builder.keepGathered() : builder).prepare();
        }
        return problem().sums().all()
                ? reduceOnHost(MatmulAllReduce.on(group), world, group, epilogue)
                : reduceOnHost(MatmulReduceScatter.on(group), world, group, epilogue);
    }

    AllGatherMatmulBuilder gatherOnHost(Transport world, Fabric group, Epilogue epilogue) {
        AllGatherMatmulBuilder builder = gather(AllGatherMatmul.on(group)).pinWorkers();
        if (operands instanceof QuantizedOperands quantized) {
            builder.b(quantized.scaledB(rank), problem().transposeB());
        } else if (operands instanceof BlockOperands blocks) {
            weights(blocks, group).forEach(builder::b);
        } else {
            bs().forEach(b -> builder.b(b, problem().transposeB()));
        }
        return builder.epilogue(epilogue).computeWorkers(computeWorkers(world));
    }

    private <O extends Operator<Matrix>> O reduceOnHost(
            MatmulReduceBuilder<O> builder, Transport world, Fabric group, Epilogue epilogue) {
        reduce(builder);
        if (operands instanceof BlockOperands blocks) {
            weights(blocks, group).forEach(builder::b);
        } else {
            bs().forEach(b -> builder.b(b, problem().transposeB()));
        }
        return builder.epilogue(epilogue).computeWorkers(computeWorkers(world)).prepare();
    }

    /** All groups of the world share the cores, not only this group's ranks. */
    private int computeWorkers(Transport world) {
        int wanted = request.execution().workers().compute();
        return wanted > 0 ? wanted : world.cores().cores();
    }

    private List<Weights> weights(BlockOperands blocks, Fabric group) {
        int parts = EpilogueData.columnsJoined(request.execution().epilogue());
        return blocks.weights(group, rank, request.execution().workers().engine(), parts);
    }

    /** The Bs of the rank's products. */
    List<Matrix> bs() {
        return EpilogueData.products(
                request.execution().epilogue(), operands.b(rank), problem().transposeB());
    }

    /**
     * On a GPU. Gathered A is kept anyway, unless rows are read in place.
     *
     * @param group null if the peers' rows are in host memory
     * @param b null if it has scales
     * @param steps the steps of an epilogue, which determine the Bs; null if the product is wanted
     *     unchanged
     */
    CudaAllGatherMatmulBuilder gatherOnGpu(Gpu gpu, Fabric group, DeviceMatrix b, String steps) {
        CudaAllGatherMatmulBuilder builder =
                gather(
                        group == null
                                ? CudaAllGatherMatmul.withHostPeers(gpu, 0)
                                : CudaAllGatherMatmul.on(group, gpu));
        boolean transposed = problem().transposeB();
        if (operands instanceof QuantizedOperands quantized) {
            builder.b(quantized.scaledB(rank), transposed);
        } else {
            // An operator copies columns that a kernel cannot read where they are.
            long parts = EpilogueData.products(steps, operands.b(rank), transposed).size();
            long cols = (transposed ? b.rows() : b.cols()) / parts;
            for (long first = 0; first < parts * cols; first += cols) {
                builder.b(
                        transposed ? b.rows(first, cols) : CudaSite.columns(b, first, first + cols),
                        transposed);
            }
        }
        return builder.deadline(request.execution().deadline());
    }

    /** On a GPU. */
    CudaMatmulReduceBuilder reduceOnGpu(Gpu gpu, Fabric group) {
        boolean all = problem().sums().all();
        CudaMatmulReduceBuilder builder =
                reduce(
                        group == null
                                ? CudaMatmulReduce.withHostPeers(gpu, problem().memberOf(rank), all)
                                : CudaMatmulReduce.on(group, gpu, all));
        bs().forEach(b -> builder.b(b, problem().transposeB()));
        return builder.deadline(request.execution().deadline());
    }

    private <B extends OperatorBuilder<?, B>> B gather(B builder) {
        ProblemSpec problem = problem();
        if (problem.fp8() == null) {
            builder.a(problem.shards(rank), problem.aType());
        } else {
            builder.scaledA(problem.shards(rank), problem.multipliedA(), problem.fp8().scaling());
        }
        describe(builder).algorithm(GatherWriter.named(algorithm));
        if (request.execution().workers().comm() > 0) {
            builder.commWorkers(request.execution().workers().comm());
        }
        if (request.cut(rank).chunkCols() > 0) {
            builder.chunkCols(request.cut(rank).chunkCols());
        }
        // With cuBLAS, rows wait in stream order, so there is nothing to count.
        boolean counts = !request.execution().workers().engine().equals("cublas");
        return request.execution().hasViewsOfExample() && counts
                ? builder.waitForSummary()
                : builder;
    }

    private <B extends ReduceBuilder<?, B>> B reduce(B builder) {
        builder.a(problem().shards(rank), problem().kParts(rank), problem().aType());
        return describe(builder).algorithm(ReductionWriter.named(algorithm)).order(order);
    }

    /** Everything but A, B, the algorithm and the epilogue. */
    private <B extends MatmulBuilder<?, B>> B describe(B builder) {
        builder.output(problem().outType()).engine(request.execution().workers().engine());
        if (request.execution().workers().compute() > 0) {
            builder.computeWorkers(request.execution().workers().compute());
        }
        Cut cut = request.cut(rank);
        if (cut.chunkRows() > 0) {
            builder.chunkRows(cut.chunkRows());
        }
        return cut.splitsPerRank() > 0 ? builder.splitsPerRank(cut.splitsPerRank()) : builder;
    }
}
