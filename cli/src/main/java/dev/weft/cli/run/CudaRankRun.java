package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.CudaAllGatherMatmulBuilder;
import dev.weft.cuda.DeviceCheck;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Timeline;
import dev.weft.op.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * One rank's whole job on a GPU: prepare, warm up, measure the views by the device's clock, one
 * functional call on poisoned memory, judge it on the device, write it. The views take turns, as in
 * {@link RankRun}.
 *
 * <p>Between its calls all ranks meet: what allocates, frees or loads on a GPU may wait for the
 * grids that run there, and those must not wait for it.
 */
final class CudaRankRun implements RankJob {

    private final ProblemSpec problem;
    private final ExecutionSpec execution;
    private final Operands operands;
    private final DataFolder files;
    private final Progress progress;

    CudaRankRun(
            ProblemSpec problem,
            ExecutionSpec execution,
            Operands operands,
            DataFolder files,
            Progress progress) {
        this.problem = problem;
        this.execution = execution;
        this.operands = operands;
        this.files = files;
        this.progress = progress;
    }

    /** What all calls of this rank share. */
    private record Caller(Transport world, GpuStream stream) {

        void together() {
            if (world != null) {
                world.barrier();
            }
        }

        long ownCpuNs() {
            return world == null ? 0 : world.ownCpuNs();
        }

        /** On the shard that lies in the operator's memory; nanoseconds on the device. */
        long call(CudaAllGatherMatmul op, View view) {
            together();
            op.start(op.nextShard(), stream, view);
            op.await();
            return ns(op.elapsedUs());
        }
    }

    private record Results(RankReport report, Matrix product, Matrix gathered) {}

    @Override
    public RankReport run(Fabric fabric) throws IOException {
        Transport world = fabric == null ? null : Transport.of(fabric);
        int rank = world == null ? 0 : world.rank();
        try (Arena arena = Arena.ofConfined()) {
            Results results = onGpu(world, rank, arena);
            // After the operators' last call; under MPI peers wait for the reports meanwhile.
            return world == null
                    ? write(rank, results)
                    : Heartbeat.during(world, () -> write(rank, results));
        }
    }

    private RankReport write(int rank, Results results) throws IOException {
        files.writeOutputs(rank, results.product(), results.gathered(), execution.npy());
        return results.report();
    }

    private Results onGpu(Transport world, int rank, Arena arena) {
        // Never closed: kernels are loaded once per process, into this context.
        Gpu gpu = Gpu.open((world == null ? 0 : world.cores().place()) % Gpu.count());
        Transport group =
                world != null && problem.groups() > 1 ? world.split(problem.groups()) : world;
        try (GpuStream stream = GpuStream.create();
                CudaInputs inputs = CudaInputs.upload(problem, operands, rank, stream);
                DeviceCheck check = new DeviceCheck(gpu);
                CudaAllGatherMatmul fused =
                        builder(group, gpu, inputs, execution.algorithm()).prepare();
                CudaAllGatherMatmul sequential =
                        builder(group, gpu, inputs, Algorithm.SEQUENTIAL).prepare()) {
            Caller caller = new Caller(world, stream);
            place(caller, rank, fused);
            place(caller, rank, sequential);
            ViewTimes times = measure(caller, fused, sequential);
            callOnPoison(caller, check, fused);
            callOnPoison(caller, check, sequential);
            caller.together();
            RankReport report = report(gpu, check, inputs, fused, sequential, times);
            Matrix product = download(fused.product(0), stream, arena);
            Matrix gathered =
                    execution.keepGathered()
                            ? download(keptRows(fused, sequential), stream, arena)
                            : null;
            caller.together();
            return new Results(report, product, gathered);
        } finally {
            if (group != world) {
                group.close();
            }
        }
    }

    private CudaAllGatherMatmulBuilder builder(
            Transport group, Gpu gpu, CudaInputs inputs, PlanWriter algorithm) {
        CudaAllGatherMatmulBuilder builder =
                group == null
                        ? CudaAllGatherMatmul.withHostPeers(gpu, 0)
                        : CudaAllGatherMatmul.on(group, gpu);
        return CudaRules.describe(builder, problem, execution)
                .b(inputs.b(), problem.transposeB())
                .algorithm(algorithm);
    }

    /** Both slots get the shard, by a call each; from now on every call finds it in place. */
    private void place(Caller caller, int rank, CudaAllGatherMatmul op) {
        for (int peer = 0; execution.hostPeers() && peer < problem.ranks(); peer++) {
            if (peer != rank && problem.shards().rows(peer) > 0) {
                operands.copyShard(peer, op.peerShard(peer));
            }
        }
        for (int slot = 0; slot < 2; slot++) {
            caller.together();
            op.nextShard().upload(operands.shard(rank), caller.stream());
            caller.call(op, View.PIPELINED);
        }
    }

    private ViewTimes measure(
            Caller caller, CudaAllGatherMatmul fused, CudaAllGatherMatmul sequential) {
        ViewTimes times = new ViewTimes(execution.iterations());
        int rounds = execution.warmup() + execution.iterations();
        long metNs = 0;
        progress.begin("measuring", rounds);
        for (int round = 0; round < rounds; round++) {
            // Warm-up rounds land in the first sample, which the first measured round replaces.
            int at = Math.max(0, round - execution.warmup());
            times.computeOnly[at] = caller.call(fused, View.COMPUTE_ONLY);
            times.commOnly[at] = caller.call(fused, View.COMM_ONLY);
            times.sequential[at] = caller.call(sequential, View.PIPELINED);
            times.sequentialGather[at] = ns(sequential.gatherUs());
            metNs = System.nanoTime();
            long cpuNs = caller.ownCpuNs();
            times.pipelined[at] = caller.call(fused, View.PIPELINED);
            times.progressCpu[at] = caller.ownCpuNs() - cpuNs;
            progress.advance(round + 1);
        }
        // Clocks of different hosts have nothing in common but the barrier before.
        long originNs = caller.world() == null || caller.world().sharesMemory() ? 0 : metNs;
        times.timeline = timeline(fused, System.nanoTime()).since(originNs);
        progress.end();
        return times;
    }

    private static long ns(double us) {
        return Math.round(us * 1e3);
    }

    /**
     * The device tells when the call began and ended, and in between only where it gathers first.
     */
    private static Timeline timeline(CudaAllGatherMatmul op, long endNs) {
        RankPlan plan = op.plan();
        int rank = plan.rank();
        Shards shards = plan.chunks().shards();
        long elapsed = ns(op.elapsedUs());
        long gathered = ns(op.gatherUs());
        List<Timeline.Track> tracks = new ArrayList<>();
        if (!plan.lanes().isEmpty()) {
            long peerRows = shards.totalRows() - shards.rows(rank);
            long end = gathered > 0 ? gathered : elapsed;
            tracks.add(track("copies", Timeline.Kind.TRANSFER, rank, peerRows, 0, end));
        }
        tracks.add(
                track(
                        "compute",
                        Timeline.Kind.COMPUTE,
                        rank,
                        shards.totalRows(),
                        gathered,
                        elapsed));
        return new Timeline(rank, endNs - elapsed, elapsed, tracks);
    }

    private static Timeline.Track track(
            String name, Timeline.Kind kind, int rank, long rows, long startNs, long endNs) {
        return new Timeline.Track(
                name, List.of(Timeline.Span.local(kind, rank, rank, 0, rows, startNs, endNs)));
    }

    /**
     * Every element of C must be written anew, and every row of the peers must arrive anew: their
     * rows are the same in each call, so that those of an earlier one could pass for them.
     */
    private void callOnPoison(Caller caller, DeviceCheck check, CudaAllGatherMatmul op) {
        // The two buffers take turns: the call after the next gathers into this one.
        Optional<DeviceMatrix> landing = op.gathered();
        caller.call(op, View.PIPELINED);
        caller.together();
        landing.ifPresent(rows -> poisonPeers(check, rows, op.plan().rank()));
        poison(check, op.product(0));
        caller.call(op, View.PIPELINED);
    }

    private void poisonPeers(DeviceCheck check, DeviceMatrix gathered, int rank) {
        long first = problem.shards().firstRow(rank);
        long end = first + problem.shards().rows(rank);
        poison(check, gathered.rows(0, first));
        poison(check, gathered.rows(end, gathered.rows() - end));
    }

    private static void poison(DeviceCheck check, DeviceMatrix matrix) {
        if (matrix.rows() > 0) {
            check.poison(matrix);
        }
    }

    private RankReport report(
            Gpu gpu,
            DeviceCheck check,
            CudaInputs inputs,
            CudaAllGatherMatmul fused,
            CudaAllGatherMatmul sequential,
            ViewTimes times) {
        RankPlan plan = fused.plan();
        boolean equal = check.equal(fused.product(0), sequential.product(0)).passed();
        return new RankReport(
                plan.name(),
                "cuda: " + gpu.name(),
                fused.engine().label(),
                fused.computeBlocks(),
                plan.lanes().size(),
                plan.chunks().chunkRows(plan.rank()),
                plan.chunks().total(),
                times.computeOnly,
                times.commOnly,
                times.sequential,
                times.sequentialGather,
                times.pipelined,
                times.progressCores(),
                isExact(check, fused, inputs) && isExact(check, sequential, inputs),
                equal,
                isRight(check, fused, inputs) && (equal || isRight(check, sequential, inputs)),
                List.of(),
                times.timeline);
    }

    /** True where rows are read in place: nothing is gathered that could be wrong. */
    private static boolean isExact(DeviceCheck check, CudaAllGatherMatmul op, CudaInputs inputs) {
        return op.gathered().map(rows -> check.equal(rows, inputs.a()).passed()).orElse(true);
    }

    private boolean isRight(DeviceCheck check, CudaAllGatherMatmul op, CudaInputs inputs) {
        return check.product(inputs.a(), inputs.b(), problem.transposeB(), op.product(0)).passed();
    }

    /** What reads rows in place keeps none; the sequential one always does. */
    private static DeviceMatrix keptRows(
            CudaAllGatherMatmul fused, CudaAllGatherMatmul sequential) {
        return fused.gathered().or(sequential::gathered).orElseThrow();
    }

    private static Matrix download(DeviceMatrix from, GpuStream stream, Arena arena) {
        Matrix host = Matrix.allocate(arena, from.dtype(), from.rows(), from.cols());
        from.download(host, stream);
        return host;
    }
}
