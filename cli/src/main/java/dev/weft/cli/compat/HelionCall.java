package dev.weft.cli.compat;

import dev.weft.cli.compat.ProductRun.At;
import dev.weft.cli.run.RankReport;
import dev.weft.cli.run.ViewRounds.Measured;
import dev.weft.compat.Helion;
import dev.weft.compat.HelionCuda;
import dev.weft.compat.HelionGather;
import dev.weft.compat.HelionProgress;
import dev.weft.compat.HelionResult;
import dev.weft.compat.HelionShared;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemms;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Optional;

/**
 * Helion's call and its two halves, with buffers that all calls use again. Its times are those of
 * this host's clock, from before the call until its result is there.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
final class HelionCall<M> implements SourceCall<M> {

    /** The calls in one kind of memory. */
    interface Calls<M> {

        /** Gathers and multiplies. */
        HelionResult<M> whole();

        /** Gathers; afterwards all chunks are ready. */
        HelionGather gather();

        /** Multiplies what has been gathered. */
        HelionResult<M> multiply();

        void close();
    }

    private final Fabric group;
    private final Calls<M> calls;
    private final Layout layout;
    private final String engine;
    private final long chunkRows;
    private HelionResult<M> last;
    private Timeline timeline;

    private HelionCall(Fabric group, Calls<M> calls, ProductRun run, int splits, String engine) {
        this.group = group;
        this.calls = calls;
        this.layout = new Layout(new long[] {run.m() * run.ranks(), run.n()}, "", splits);
        this.engine = engine;
        this.chunkRows = Math.max(1, run.m() / splits);
        group.barrier();
        ns(View.COMM_ONLY);
    }

    static HelionCall<Matrix> onHost(At<Matrix, SourceSite.Host> at, int splits) {
        ProductRun run = at.run();
        Fabric group = at.group();
        Matrix b = at.b();
        HelionShared<Matrix> shared = Helion.empty(group, run.m(), run.k(), run.type());
        shared.local().copyFrom(at.shard());
        HelionProgress progress = Helion.progress(group, splits);
        Arena arena = Arena.ofShared();
        Matrix gathered = Matrix.allocate(arena, run.type(), run.m() * run.ranks(), run.k());
        Calls<Matrix> calls =
                new Calls<>() {
                    @Override
                    public HelionResult<Matrix> whole() {
                        return Helion.allGatherMatmul(
                                group, shared, b, true, gathered, progress, splits);
                    }

                    @Override
                    public HelionGather gather() {
                        return Helion.copyEngineAllGatherWithProgress(
                                gathered, shared, progress, splits);
                    }

                    @Override
                    public HelionResult<Matrix> multiply() {
                        Matrix c =
                                Helion.matmulWithProgress(
                                        gathered, shared, b, true, progress, splits, group.rank());
                        return new HelionResult.OnHost(gathered, c);
                    }

                    @Override
                    public void close() {
                        shared.close();
                        arena.close();
                    }
                };
        return new HelionCall<>(group, calls, run, splits, Gemms.auto().name());
    }

    static HelionCall<DeviceMatrix> onDevice(At<DeviceMatrix, SourceSite.Device> at, int splits) {
        ProductRun run = at.run();
        Fabric group = at.group();
        SourceSite.Device site = at.site();
        DeviceMatrix b = at.b();
        HelionShared<DeviceMatrix> shared =
                HelionCuda.empty(group, site.gpu(), run.m(), run.k(), run.type());
        site.copy(at.shard(), shared.local());
        DeviceProgress progress = site.progress(run.ranks() * splits);
        DeviceMatrix gathered = site.allocate(run.type(), run.m() * run.ranks(), run.k());
        Calls<DeviceMatrix> calls =
                new Calls<>() {
                    @Override
                    public HelionResult<DeviceMatrix> whole() {
                        return HelionCuda.allGatherMatmul(
                                group,
                                site.gpu(),
                                shared,
                                b,
                                true,
                                gathered,
                                progress,
                                splits,
                                site.stream());
                    }

                    @Override
                    public HelionGather gather() {
                        return HelionCuda.copyEngineAllGatherWithProgress(
                                gathered, shared, progress, splits, site.stream());
                    }

                    @Override
                    public HelionResult<DeviceMatrix> multiply() {
                        return HelionCuda.matmulWithProgress(
                                gathered,
                                shared,
                                b,
                                true,
                                progress,
                                splits,
                                group.rank(),
                                site.stream());
                    }

                    @Override
                    public void close() {
                        shared.close();
                    }
                };
        return new HelionCall<>(group, calls, run, splits, "gated");
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public long ns(View view) {
        if (last != null) {
            last.close();
            last = null;
        }
        long start = System.nanoTime();
        if (view == View.COMM_ONLY) {
            try (HelionGather gather = calls.gather()) {
                gather.await();
            }
        } else {
            last = view == View.PIPELINED ? calls.whole() : calls.multiply();
            last.await();
        }
        long elapsed = System.nanoTime() - start;
        if (view == View.PIPELINED) {
            timeline = timeline(start, elapsed);
        }
        return elapsed;
    }

    /** The call does not tell what its halves did when; of it only begin and end are known. */
    private Timeline timeline(long startNs, long elapsedNs) {
        int rank = group.rank();
        Timeline.Span span =
                Timeline.Span.local(
                        Timeline.Kind.COMPUTE, rank, rank, 0, layout.shape()[0], 0, elapsedNs);
        return new Timeline(
                rank, startNs, elapsedNs, List.of(new Timeline.Track("compute-0", List.of(span))));
    }

    @Override
    public Timeline timeline() {
        return timeline;
    }

    /** The measured call's, which was fresh: no other call has written it. */
    @Override
    public M product() {
        return last.c();
    }

    @Override
    public Optional<M> gathered() {
        return Optional.of(last.aOut());
    }

    /** The symmetric shard. */
    @Override
    public long reachableBytes() {
        return 0;
    }

    @Override
    public RankReport report(String device, Measured measured, boolean exact, boolean equal) {
        return new RankReport(
                "helion",
                device,
                engine,
                Transport.of(group).cores().cores(),
                1,
                chunkRows,
                measured.times(),
                exact,
                equal,
                true,
                List.of(),
                measured.timeline());
    }

    @Override
    public void close() {
        if (last != null) {
            last.close();
        }
        calls.close();
    }
}
