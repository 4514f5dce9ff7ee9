package dev.weft.cli.run;

import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.Operands;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.verify.EpilogueJudge;
import dev.weft.cli.verify.ProductJudge;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.op.Result;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Optional;

/** A rank on a GPU that gathers rows of A. */
final class CudaGatherRank extends CudaRank {

    private final CudaInputs inputs;
    private final DeviceCheck check;

    CudaGatherRank(
            RunRequest request,
            Operands operands,
            Transport world,
            Fabric group,
            EpilogueData data) {
        super(request, operands, world, group, data);
        this.inputs = CudaInputs.upload(problem, operands, rank, site);
        this.check = site.check();
    }

    @Override
    public Operator<DeviceMatrix> prepare() {
        return builder(operators, execution.epilogue()).epilogue(epilogue).prepare();
    }

    @Override
    public Operator<DeviceMatrix> prepareSequential() {
        return builder(operators.sequential(), execution.epilogue()).epilogue(epilogue).prepare();
    }

    private CudaAllGatherMatmulBuilder builder(Operators way, String steps) {
        return way.gatherOnGpu(site.gpu(), group, inputs.b(), steps);
    }

    @Override
    void placePeers(Operator<DeviceMatrix> operator) {
        for (int peer = 0; peer < problem.ranks(); peer++) {
            if (peer != rank && problem.shards().rows(peer) > 0) {
                Matrix target = ((CudaAllGatherMatmul) operator).peerShard(peer);
                if (problem.fp8() == null) {
                    operands.copyShard(peer, target);
                } else {
                    target.copyFrom(operands.moved(peer));
                }
            }
        }
    }

    /** Checks every element, on the device; also checks the sequential operator's product. */
    @Override
    public Judged judge(Operator<DeviceMatrix> fused, Operator<DeviceMatrix> sequential)
            throws IOException {
        Result<DeviceMatrix> overlapped = callOnPoison(fused);
        Result<DeviceMatrix> plain = callOnPoison(sequential);
        RankSite.barrier(world);
        boolean equal = check.equal(overlapped.product(), plain.product()).passed();
        // An operator that reads rows in place keeps none; the sequential one always does.
        DeviceMatrix rows = overlapped.gathered().or(plain::gathered).orElseThrow();
        Matrix product = site.get(overlapped.product(), arena);
        boolean right =
                data == null
                        ? isRight(overlapped) && (equal || isRight(plain))
                        : isEpilogueOfSums(product);
        Judged judged =
                new Judged(
                        isExact(overlapped) && isExact(plain),
                        equal,
                        right,
                        product,
                        execution.keepGathered() ? site.get(rows, arena) : null);
        RankSite.barrier(world);
        return judged;
    }

    /**
     * Whether a result has the bits of the CPU's epilogue applied to this GPU's sums, which are
     * checked on the device; that epilogue is checked too.
     */
    private boolean isEpilogueOfSums(Matrix result) throws IOException {
        try (Operator<DeviceMatrix> operator =
                        builder(operators.sequential(), null).output(DType.FP32).prepare();
                Arena memory = Arena.ofShared()) {
            place(operator);
            Result<DeviceMatrix> products = callOnPoison(operator);
            RankSite.barrier(world);
            boolean right = isRight(products);
            Matrix sums = site.get(products.product(), memory);
            boolean same =
                    Heartbeat.during(
                            world,
                            () -> {
                                Matrix expected = data.finished(sums, result.dtype(), memory);
                                return expected.equalsUpToNaN(result)
                                        && new EpilogueJudge(data).worst(sums, expected) <= 1;
                            });
            RankSite.barrier(world);
            return right && same;
        }
    }

    /**
     * Every element of C must be written again, and every row of the peers must arrive again: their
     * rows are the same in each call, so those of an earlier call could go unnoticed.
     */
    private Result<DeviceMatrix> callOnPoison(Operator<DeviceMatrix> operator) {
        // The two buffers alternate: the call after the next gathers into this one.
        Optional<DeviceMatrix> landing = operator.lastResult().gathered();
        Result<DeviceMatrix> result = call(operator);
        RankSite.barrier(world);
        landing.ifPresent(this::poisonPeers);
        check.poison(result.product());
        return call(operator);
    }

    private void poisonPeers(DeviceMatrix gathered) {
        int member = problem.memberOf(rank);
        Shards shards = problem.shards(rank);
        long first = shards.firstRow(member);
        long end = first + shards.rows(member);
        check.poison(gathered.rows(0, first));
        check.poison(gathered.rows(end, gathered.rows() - end));
    }

    /** True if rows are read in place: then nothing is gathered that could be wrong. */
    private boolean isExact(Result<DeviceMatrix> result) {
        return result.gathered().map(rows -> check.equal(rows, inputs.a()).passed()).orElse(true);
    }

    /** Products of operands with scales are checked on the host, others on the device. */
    private boolean isRight(Result<DeviceMatrix> result) {
        if (problem.fp8() != null) {
            try (Arena memory = Arena.ofShared()) {
                Matrix a = Operands.gatheredA(operands, problem, rank, memory);
                Matrix product = site.get(result.product(), memory);
                return new ProductJudge(problem, rank)
                        .judge(a, operands.b(rank), product, ProductJudge.LOST_BY_FP8_SUMS)
                        .withinBound();
            }
        }
        return check.product(inputs.a(), inputs.b(), problem.transposeB(), result.product())
                .passed();
    }
}
