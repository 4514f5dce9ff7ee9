package dev.weft.cli.run;

import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.CudaAllGatherMatmulBuilder;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.exec.DeviceCheck;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.op.Result;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Shards;
import java.lang.foreign.Arena;
import java.util.Optional;

/** The site of a rank on a GPU. */
final class CudaRank implements RankSite<DeviceMatrix> {

    private final ProblemSpec problem;
    private final ExecutionSpec execution;
    private final Operands operands;
    private final Fabric world;
    private final Fabric group;
    private final int rank;
    private final Arena arena = Arena.ofConfined();
    private final CudaSite site;
    private final CudaInputs inputs;
    private final DeviceCheck check;

    /**
     * @param world null where the peers' rows lie in host memory
     */
    CudaRank(
            ProblemSpec problem,
            ExecutionSpec execution,
            Operands operands,
            Transport world,
            Fabric group) {
        this.problem = problem;
        this.execution = execution;
        this.operands = operands;
        this.world = world;
        this.group = group;
        this.rank = world == null ? 0 : world.rank();
        this.site = new CudaSite(world);
        this.inputs = CudaInputs.upload(problem, operands, rank, site);
        this.check = site.check();
    }

    @Override
    public String device() {
        return site.device();
    }

    @Override
    public Operator<DeviceMatrix> prepare() {
        return prepare(execution.algorithm());
    }

    @Override
    public Operator<DeviceMatrix> prepareSequential() {
        return prepare(Algorithm.SEQUENTIAL);
    }

    /** Gathered A is kept anyway, unless rows are read in place. */
    private Operator<DeviceMatrix> prepare(PlanWriter algorithm) {
        CudaAllGatherMatmulBuilder builder =
                group == null
                        ? CudaAllGatherMatmul.withHostPeers(site.gpu(), 0)
                        : CudaAllGatherMatmul.on(group, site.gpu());
        return execution
                .describe(builder, problem, rank)
                .deadline(execution.deadline())
                .b(inputs.b(), problem.transposeB())
                .algorithm(algorithm)
                .prepare();
    }

    @Override
    public void place(Operator<DeviceMatrix> operator) {
        for (int peer = 0; execution.hostPeers() && peer < problem.ranks(); peer++) {
            if (peer != rank && problem.shards().rows(peer) > 0) {
                operands.copyShard(peer, ((CudaAllGatherMatmul) operator).peerShard(peer));
            }
        }
        for (int half = 0; half < 2; half++) {
            RankSite.together(world);
            operator.nextShard().upload(operands.shard(rank), site.stream());
            call(operator);
        }
    }

    private Result<DeviceMatrix> call(Operator<DeviceMatrix> operator) {
        RankSite.together(world);
        return operator.callInPlace(View.PIPELINED);
    }

    /** On the device, every element; the sequential operator's product is judged as well. */
    @Override
    public Judged judge(Operator<DeviceMatrix> fused, Operator<DeviceMatrix> sequential) {
        Result<DeviceMatrix> overlapped = callOnPoison(fused);
        Result<DeviceMatrix> plain = callOnPoison(sequential);
        RankSite.together(world);
        boolean equal = check.equal(overlapped.product(), plain.product()).passed();
        // What reads rows in place keeps none; the sequential one always does.
        DeviceMatrix rows = overlapped.gathered().or(plain::gathered).orElseThrow();
        Judged judged =
                new Judged(
                        isExact(overlapped) && isExact(plain),
                        equal,
                        isRight(overlapped) && (equal || isRight(plain)),
                        site.get(overlapped.product(), arena),
                        execution.keepGathered() ? site.get(rows, arena) : null);
        RankSite.together(world);
        return judged;
    }

    /**
     * Every element of C must be written anew, and every row of the peers must arrive anew: their
     * rows are the same in each call, so that those of an earlier one could pass for them.
     */
    private Result<DeviceMatrix> callOnPoison(Operator<DeviceMatrix> operator) {
        // The two buffers take turns: the call after the next gathers into this one.
        Optional<DeviceMatrix> landing = operator.lastResult().gathered();
        Result<DeviceMatrix> result = call(operator);
        RankSite.together(world);
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

    /** True where rows are read in place: nothing is gathered that could be wrong. */
    private boolean isExact(Result<DeviceMatrix> result) {
        return result.gathered().map(rows -> check.equal(rows, inputs.a()).passed()).orElse(true);
    }

    private boolean isRight(Result<DeviceMatrix> result) {
        return check.product(inputs.a(), inputs.b(), problem.transposeB(), result.product())
                .passed();
    }

    @Override
    public void close() {
        site.close();
        arena.close();
    }
}
