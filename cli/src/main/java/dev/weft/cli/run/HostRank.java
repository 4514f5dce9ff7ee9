package dev.weft.cli.run;

import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.Operands;
import dev.weft.cli.data.QuantizedOperands;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.verify.ProductJudge;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Epilogue;
import dev.weft.op.MatmulAllReduce;
import dev.weft.op.MatmulReduceBuilder;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.op.Result;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;

/** The site of a rank on the CPU. */
record HostRank(
        ProblemSpec problem,
        ExecutionSpec execution,
        Operands operands,
        Transport world,
        Fabric group,
        Epilogue epilogue)
        implements RankSite<Matrix> {

    private Matrix shard() {
        return operands instanceof QuantizedOperands quantized
                ? quantized.rows(world.rank())
                : operands.shard(world.rank());
    }

    @Override
    public String device() {
        return "cpu";
    }

    @Override
    public Operator<Matrix> prepare() {
        return problem.sums() == null
                ? builder(execution.algorithm(), execution.keepGathered()).prepare()
                : summing(execution.summing().reduction(), execution.summing().order());
    }

    /** The sequential way to sum adds by rank. */
    @Override
    public Operator<Matrix> prepareSequential() {
        return problem.sums() == null
                ? builder(Algorithm.SEQUENTIAL, false).prepare()
                : summing(Reduction.SEQUENTIAL, sequentialOrder());
    }

    private Reduction.Order sequentialOrder() {
        Reduction.Order order = execution.summing().order();
        return order == Reduction.Order.WHOLE ? Reduction.Order.BY_RANK : order;
    }

    private Operator<Matrix> summing(Reduction reduction, Reduction.Order order) {
        return problem.sums().all()
                ? summing(MatmulAllReduce.on(group), reduction, order)
                : summing(MatmulReduceScatter.on(group), reduction, order);
    }

    private <O extends Operator<Matrix>> O summing(
            MatmulReduceBuilder<O> builder, Reduction reduction, Reduction.Order order) {
        execution.describe(builder, problem, world.rank());
        products().forEach(b -> builder.b(b, problem.transposeB()));
        return builder.algorithm(reduction)
                .order(order)
                .epilogue(epilogue)
                .computeWorkers(computeWorkers())
                .prepare();
    }

    /** All groups of the world share the cores, not only this group's ranks. */
    private int computeWorkers() {
        return execution.computeWorkers() > 0 ? execution.computeWorkers() : world.cores().cores();
    }

    private AllGatherMatmulBuilder builder(PlanWriter algorithm, boolean keepGathered) {
        AllGatherMatmulBuilder builder =
                withB(execution.describe(AllGatherMatmul.on(group), problem, world.rank()))
                        .algorithm(algorithm)
                        .epilogue(epilogue)
                        .computeWorkers(computeWorkers())
                        .pinWorkers();
        return keepGathered ? builder.keepGathered() : builder;
    }

    private AllGatherMatmulBuilder withB(AllGatherMatmulBuilder builder) {
        boolean transposed = problem.transposeB();
        if (operands instanceof QuantizedOperands quantized) {
            return builder.b(quantized.scaledB(world.rank()), transposed);
        }
        products().forEach(b -> builder.b(b, transposed));
        return builder;
    }

    /** The Bs of the rank's products. */
    private List<Matrix> products() {
        return EpilogueData.products(
                execution.epilogue(), operands.b(world.rank()), problem.transposeB());
    }

    @Override
    public void place(Operator<Matrix> operator) {
        for (int half = 0; half < 2; half++) {
            operator.nextShard().copyFrom(shard());
            operator.callInPlace(View.PIPELINED);
        }
    }

    /**
     * Gathered A must equal the inputs byte for byte. If the measured operator keeps none, a second
     * one with the same plan does. Its product must equal the measured one, or keep to the float64
     * bound if the engine promises no more. Sums of products are checked only by their files.
     */
    @Override
    public Judged judge(Operator<Matrix> fused, Operator<Matrix> sequential) throws IOException {
        world.barrier();
        fused.lastResult().product().data().fill((byte) 0xFF);
        Result<Matrix> result = fused.call(shard());
        Matrix product = result.product();
        if (problem.sums() != null) {
            return new Judged(true, true, true, product, null);
        }
        if (execution.keepGathered()) {
            Matrix gathered = result.gathered().orElseThrow();
            return Heartbeat.during(
                    world, () -> new Judged(equalsInputs(gathered), true, true, product, gathered));
        }
        try (AllGatherMatmul keeping =
                builder(execution.algorithm(), true).plans(fused.plans()).prepare()) {
            Result<Matrix> kept = keeping.call(shard());
            boolean sameBits = keeping.sameBitsForAnyRows();
            return Heartbeat.during(world, () -> compare(kept, product, sameBits));
        }
    }

    private Judged compare(Result<Matrix> kept, Matrix product, boolean sameBits) {
        Matrix gathered = kept.gathered().orElseThrow();
        boolean equal = product.equalsUpToNaN(kept.product());
        boolean withinBound = equal || sameBits || isWithinBound(kept.product());
        return new Judged(equalsInputs(gathered), equal, withinBound, product, null);
    }

    private boolean isWithinBound(Matrix product) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Operands.gatheredA(operands, problem, world.rank(), arena);
            return new ProductJudge(problem, world.rank())
                    .judge(a, operands.b(world.rank()), product)
                    .withinBound();
        }
    }

    private boolean equalsInputs(Matrix gathered) {
        try (Arena arena = Arena.ofConfined()) {
            return gathered.bitwiseEquals(
                    operands instanceof QuantizedOperands quantized
                            ? quantized.gatheredRows(world.rank(), arena)
                            : Operands.gatheredA(operands, problem, world.rank(), arena));
        }
    }

    /** The operators own everything. */
    @Override
    public void close() {}
}
