package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.verify.ProductJudge;
import dev.weft.compat.Ascend;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Result;
import dev.weft.op.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;

/**
 * One rank's whole job: prepare, warm up, measure the views, one functional call on a poisoned
 * output, write it. The views take turns, so that a disturbance of the machine meets all of them.
 */
final class RankRun implements RankJob {

    /** Least time between two things that a watched rank tells. */
    private static final long TELL_NS = 400_000_000L;

    private final ProblemSpec problem;
    private final ExecutionSpec execution;
    private final Operands operands;
    private final DataFolder files;
    private final Progress progress;
    private final RoundListener listener;

    /**
     * @param listener null where nobody listens to any rank
     */
    RankRun(
            ProblemSpec problem,
            ExecutionSpec execution,
            Operands operands,
            DataFolder files,
            Progress progress,
            RoundListener listener) {
        this.problem = problem;
        this.execution = execution;
        this.operands = operands;
        this.files = files;
        this.progress = progress;
        this.listener = listener;
    }

    @Override
    public RankReport run(Fabric fabric) throws IOException {
        Transport world = Transport.of(fabric);
        Transport group = problem.groups() > 1 ? world.split(problem.groups()) : world;
        Matrix shard = operands.shard(world.rank());
        try (AllGatherMatmul fused =
                        builder(group, world, execution.algorithm(), execution.keepGathered())
                                .prepare();
                AllGatherMatmul sequential =
                        builder(group, world, Algorithm.SEQUENTIAL, false).prepare()) {
            // Both slots of both operators get the shard; from now on every call finds it in place.
            for (int slot = 0; slot < 2; slot++) {
                fused.call(shard);
                sequential.call(shard);
            }
            ViewTimes times = measure(world, fused, sequential);
            Matrix product = functionalCall(world, fused, shard);
            Kept kept = keepGatheredCall(group, world, fused, shard, product);
            // After the operators' last call; under MPI peers wait for the reports meanwhile.
            Heartbeat.during(world, () -> writeOutputs(world.rank(), fused.lastResult()));
            return report(fused, times, kept);
        } finally {
            if (group != world) {
                group.close();
            }
        }
    }

    private static RankReport report(AllGatherMatmul fused, ViewTimes times, Kept kept) {
        RankPlan plan = fused.plan();
        return new RankReport(
                plan.name(),
                "cpu",
                fused.engine().name(),
                fused.computeWorkers(),
                plan.lanes().size(),
                plan.chunks().chunkRows(plan.rank()),
                plan.chunks().total(),
                times.computeOnly,
                times.commOnly,
                times.sequential,
                times.sequentialGather,
                times.pipelined,
                times.progressCores(),
                kept.gatheredExact,
                kept.equal,
                kept.withinBound,
                fused.candidates(),
                times.timeline);
    }

    private AllGatherMatmulBuilder builder(
            Transport group, Transport world, PlanWriter algorithm, boolean keepGathered) {
        Gemm engine = Gemms.byName(execution.engine());
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(group)
                        .a(problem.shards(), problem.aType())
                        .b(operands.b(world.rank()), problem.transposeB())
                        .output(problem.outType())
                        .engine(engine)
                        .algorithm(algorithm)
                        .computeWorkers(computeWorkers(world))
                        .pinWorkers();
        if (execution.commWorkers() > 0) {
            builder.commWorkers(execution.commWorkers());
        }
        if (execution.chunkRows() > 0) {
            builder.chunkRows(execution.chunkRows());
        }
        if (execution.chunkCols() > 0) {
            builder.chunkCols(execution.chunkCols());
        }
        if (execution.splitsPerRank() > 0) {
            builder.splitsPerRank(execution.splitsPerRank());
        }
        if (execution.ascendTiles() != null) {
            Ascend.cut(
                    builder,
                    problem.shards(),
                    problem.k(),
                    execution.ascendTiles().baseM(),
                    execution.ascendTiles().baseN());
        }
        return keepGathered ? builder.keepGathered() : builder;
    }

    /** All groups of the world share the cores, not only this one's ranks. */
    private int computeWorkers(Transport world) {
        return execution.computeWorkers() > 0 ? execution.computeWorkers() : world.cores().cores();
    }

    private ViewTimes measure(Transport world, AllGatherMatmul fused, AllGatherMatmul sequential) {
        ViewTimes times = new ViewTimes(execution.iterations());
        int rounds = execution.warmup() + execution.iterations();
        long toldNs = System.nanoTime();
        progress.begin("measuring", rounds);
        for (int round = 0; round < rounds; round++) {
            // Warm-up rounds land in the first sample, which the first measured round replaces.
            int at = Math.max(0, round - execution.warmup());
            world.barrier();
            times.computeOnly[at] = fused.callInPlace(View.COMPUTE_ONLY).elapsedNs();
            world.barrier();
            times.commOnly[at] = fused.callInPlace(View.COMM_ONLY).elapsedNs();
            world.barrier();
            Result gatherThenProduct = sequential.callInPlace(View.PIPELINED);
            times.sequential[at] = gatherThenProduct.elapsedNs();
            times.sequentialGather[at] = gatherThenProduct.gatherNs();
            world.barrier();
            long metNs = System.nanoTime();
            long cpuNs = world.ownCpuNs();
            Result pipelined = fused.callInPlace(View.PIPELINED);
            times.progressCpu[at] = world.ownCpuNs() - cpuNs;
            times.pipelined[at] = pipelined.elapsedNs();
            // All ranks of the same round, when the first one finds that it is time.
            boolean tells =
                    listener != null
                            && round >= execution.warmup()
                            && world.exchange(System.nanoTime() - toldNs >= TELL_NS ? 1 : 0)[0]
                                    == 1;
            if (round == rounds - 1 || tells) {
                // Clocks of different hosts have nothing in common but the barrier before.
                long originNs = world.sharesMemory() ? 0 : metNs;
                times.timeline = pipelined.timeline().since(originNs);
            }
            if (tells) {
                toldNs = System.nanoTime();
                RankReport soFar = report(fused, times, Kept.NOT_YET).first(at + 1);
                listener.round(world.rank(), soFar);
            }
            progress.advance(round + 1);
        }
        progress.end();
        return times;
    }

    /** Every element must be written anew: the output is poisoned first. */
    private Matrix functionalCall(Transport world, AllGatherMatmul fused, Matrix shard) {
        world.barrier();
        fused.lastResult().product().data().fill((byte) 0xFF);
        return fused.call(shard).product();
    }

    private Result writeOutputs(int worldRank, Result result) throws IOException {
        Matrix gathered = execution.keepGathered() ? result.gathered().orElseThrow() : null;
        files.writeOutputs(worldRank, result.product(), gathered, execution.npy());
        return result;
    }

    /** What {@link RankReport} tells of a call that kept gathered A. */
    private record Kept(boolean gatheredExact, boolean equal, boolean withinBound) {

        /** While it is still being measured. */
        static final Kept NOT_YET = new Kept(false, false, false);
    }

    /**
     * Gathered A must equal the inputs byte for byte. Where the measured operator keeps none, a
     * second one with the same plan does, and its product must equal the measured one's, or keep to
     * the float64 bound where the engine promises no more.
     */
    private Kept keepGatheredCall(
            Transport group, Transport world, AllGatherMatmul fused, Matrix shard, Matrix product)
            throws IOException {
        if (execution.keepGathered()) {
            Matrix gathered = fused.lastResult().gathered().orElseThrow();
            return Heartbeat.during(
                    world, () -> new Kept(equalsInputs(gathered, world.rank()), true, true));
        }
        try (AllGatherMatmul keeping =
                builder(group, world, execution.algorithm(), true).plans(fused.plans()).prepare()) {
            Result result = keeping.call(shard);
            boolean sameBits = keeping.engine().sameBitsForAnyRows();
            return Heartbeat.during(world, () -> compare(world, result, product, sameBits));
        }
    }

    private Kept compare(Transport world, Result result, Matrix product, boolean sameBits) {
        Matrix gathered = result.gathered().orElseThrow();
        boolean equal = product.bitwiseEquals(result.product());
        boolean withinBound =
                equal
                        || sameBits
                        || new ProductJudge(problem)
                                .judge(gathered, operands.b(world.rank()), result.product())
                                .withinBound();
        return new Kept(equalsInputs(gathered, world.rank()), equal, withinBound);
    }

    private boolean equalsInputs(Matrix gathered, int worldRank) {
        try (Arena arena = Arena.ofConfined()) {
            int group = problem.groupOf(worldRank);
            return gathered.bitwiseEquals(Operands.gatheredA(operands, problem, group, arena));
        }
    }
}
