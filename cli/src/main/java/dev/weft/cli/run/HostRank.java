package dev.weft.cli.run;

import dev.weft.cli.data.BlockOperands;
import dev.weft.cli.data.Operands;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.verify.ProductJudge;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator;
import dev.weft.op.Result;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.io.IOException;
import java.lang.foreign.Arena;

/** The site of a rank on the CPU. */
record HostRank(
        RunRequest request, Operands operands, Transport world, Fabric group, Epilogue epilogue)
        implements RankSite<Matrix> {

    private Matrix shard() {
        return operands.moved(world.rank());
    }

    @Override
    public String device() {
        return "cpu";
    }

    @Override
    public Operator<Matrix> prepare() {
        return operators().onHost(world, group, epilogue, request.execution().keepGathered());
    }

    @Override
    public Operator<Matrix> prepareSequential() {
        return operators().sequential().onHost(world, group, epilogue, false);
    }

    private Operators operators() {
        return Operators.of(request, operands, world.rank());
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
        if (!request.problem().gathers()) {
            return new Judged(true, true, true, product, null);
        }
        if (request.execution().keepGathered()) {
            Matrix gathered = result.gathered().orElseThrow();
            return Heartbeat.during(
                    world, () -> new Judged(equalsInputs(gathered), true, true, product, gathered));
        }
        try (AllGatherMatmul keeping =
                operators()
                        .gatherOnHost(world, group, epilogue)
                        .keepGathered()
                        .like(fused.plan())
                        .prepare()) {
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
            Matrix a = Operands.gatheredA(operands, request.problem(), world.rank(), arena);
            return new ProductJudge(request.problem(), world.rank())
                    .judge(a, operands.b(world.rank()), product)
                    .withinBound();
        }
    }

    private boolean equalsInputs(Matrix gathered) {
        try (Arena arena = Arena.ofConfined()) {
            return gathered.bitwiseEquals(
                    operands.allMoved(request.problem(), world.rank(), arena));
        }
    }

    /** The operators own everything else. */
    @Override
    public void close() {
        if (operands instanceof BlockOperands blocks) {
            blocks.close(world.rank());
        }
    }
}
