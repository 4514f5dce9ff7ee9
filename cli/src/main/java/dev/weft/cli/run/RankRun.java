package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.memory.MemoryFabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator;
import dev.weft.report.RunRecord;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * One rank's whole job, on a CPU or a GPU: prepare, warm up, measure the views, make a call on a
 * poisoned output, check the product and write it.
 *
 * <p>A rank in no group does the same alone, with no rows and so with nothing to multiply or write.
 *
 * <p>All ranks synchronize before each call. On a GPU, allocating, freeing and loading may wait for
 * running grids, so no grid may wait for a rank that is still doing so.
 *
 * @param progress drawn by the rank that is given a visible one
 * @param listener null if no rank has one
 */
record RankRun(Inputs inputs, Progress progress, RoundListener listener) {

    /**
     * Collective.
     *
     * @param fabric null if the other ranks exist only as host memory
     */
    RankReport run(Fabric fabric) throws IOException {
        ProblemSpec problem = inputs.problem();
        Transport world = fabric == null ? null : Transport.of(fabric);
        ExecutionSpec.Place place = inputs.request().execution().place();
        if (place.link() > 0) {
            ((MemoryFabric) world).pace(place.link());
        }
        Fabric group =
                world == null || problem.replicaGroups().isAll(world.size())
                        ? world
                        : world.split(problem.replicaGroups());
        try (RankSite<?> site = place.cuda() ? onGpu(world, group) : onHost(world, group)) {
            return run(world, site);
        } finally {
            if (group != world) {
                group.close();
            }
        }
    }

    private RankSite<?> onGpu(Transport world, Fabric group) throws IOException {
        RunRequest request = inputs.request();
        return request.problem().gathers()
                ? new CudaGatherRank(request, inputs.operands(), world, group, data(world))
                : new CudaSumsRank(request, inputs.operands(), world, group, data(world));
    }

    private RankSite<?> onHost(Transport world, Fabric group) throws IOException {
        EpilogueData data = data(world);
        Epilogue epilogue = data == null ? Epilogue.none() : data.epilogue();
        return new HostRank(inputs.request(), inputs.operands(), world, group, epilogue);
    }

    /**
     * The data for this rank's rows of C; null if there is no epilogue. Valid as long as it is
     * read.
     */
    private EpilogueData data(Transport world) throws IOException {
        String steps = inputs.request().execution().epilogue();
        if (steps == null) {
            return null;
        }
        ProblemSpec problem = inputs.problem();
        int rank = world == null ? 0 : world.rank();
        return Heartbeat.during(
                world,
                () ->
                        EpilogueData.of(steps, problem, rank, Arena.ofAuto())
                                .ofRows(problem.firstRowOfC(rank), problem.rowsOfC(rank)));
    }

    private <M> RankReport run(Transport world, RankSite<M> site) throws IOException {
        int rank = world == null ? 0 : world.rank();
        ExecutionSpec execution = inputs.request().execution();
        try (Operator<M> fused = site.prepare();
                Operator<M> sequential = site.prepareSequential()) {
            // From now on, every call finds the shard in place.
            site.place(fused);
            site.place(sequential);
            ViewRounds.Measured measured =
                    new ViewRounds(
                                    world,
                                    execution.rounds().warmup(),
                                    execution.rounds().iterations(),
                                    progress,
                                    execution.hasViewsOfExample())
                            .measure(
                                    ViewRounds.of(fused),
                                    isSequential(fused) ? fused : sequential,
                                    listener == null
                                            ? null
                                            : soFar -> tell(rank, site, fused, soFar));
            RankSite.Judged judged = site.judge(fused, sequential);
            // After the operators' last call; under MPI, peers wait for the reports meanwhile.
            return Heartbeat.during(
                    world,
                    () -> {
                        if (!inputs.problem().sitsOut(rank)) {
                            inputs.folder()
                                    .writeOutputs(
                                            rank,
                                            judged.product(),
                                            judged.gathered(),
                                            execution.npy());
                        }
                        return RankReport.of(
                                site.device(),
                                fused,
                                measured,
                                judged.gatheredExact(),
                                judged.equal(),
                                judged.withinBound(),
                                plans(rank, fused));
                    });
        }
    }

    private List<String> plans(int rank, Operator<?> fused) {
        boolean shown = rank == inputs.problem().rankOf(0, 0);
        return shown ? Explanation.plan(fused.plan().steps()) : List.of();
    }

    /** Then a call of it is a sample of both views, and their ratio is 1. */
    private static boolean isSequential(Operator<?> fused) {
        return fused.plan().name().equals(RunRecord.Execution.SEQUENTIAL);
    }

    private void tell(int rank, RankSite<?> site, Operator<?> fused, ViewRounds.Measured soFar) {
        listener.round(
                rank, RankReport.of(site.device(), fused, soFar, false, false, false, List.of()));
    }
}
