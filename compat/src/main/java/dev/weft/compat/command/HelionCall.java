package dev.weft.compat.command;

import dev.weft.cli.run.CudaSite;
import dev.weft.cli.run.RankReport;
import dev.weft.cli.run.ViewRounds.Measured;
import dev.weft.compat.DeviceProgress;
import dev.weft.compat.Helion;
import dev.weft.compat.HelionCuda;
import dev.weft.compat.HelionGather;
import dev.weft.compat.HelionProgress;
import dev.weft.compat.HelionResult;
import dev.weft.compat.HelionShared;
import dev.weft.compat.command.ProductRun.At;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemms;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Helion's call and its two halves, with buffers that all calls reuse. Its times are by this host's
 * clock, from before the call until its result is there.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
final class HelionCall<M> implements SourceCall<M> {

    /**
     * The calls in one kind of memory.
     *
     * @param whole gathers and multiplies
     * @param gather makes all chunks ready
     * @param multiply multiplies what has been gathered
     */
    record Calls<M>(
            String engine,
            HelionShared<M> shared,
            Supplier<HelionResult<M>> whole,
            Supplier<HelionGather> gather,
            Supplier<HelionResult<M>> multiply) {}

    private final At<M> at;
    private final int splits;
    private final Calls<M> calls;
    private HelionResult<M> last;
    private Timeline timeline;

    HelionCall(At<M> at, int splits, Calls<M> calls) {
        this.at = at;
        this.splits = splits;
        this.calls = calls;
        at.group().barrier();
        fusedNs(View.COMM_ONLY);
    }

    /**
     * @param config the tiles; null for those that suit the machine
     */
    static Calls<Matrix> onHost(At<Matrix> at, int splits, Helion.Config config) {
        ProductRun run = at.run();
        Fabric group = at.group();
        int rank = group.rank();
        Matrix b = at.b();
        HelionShared<Matrix> shared = Helion.empty(group, run.m(), run.k(), run.type());
        shared.local().copyFrom(at.shard());
        HelionProgress ready = Helion.progress(group, splits);
        Matrix aOut = Matrix.allocate(run.arena(), run.type(), run.m() * run.ranks(), run.k());
        Supplier<Matrix> product =
                () ->
                        Helion.matmulWithProgress(
                                aOut, shared, b, true, null, ready, splits, rank, config);
        return new Calls<>(
                Gemms.auto(run.type(), run.type()).name(),
                shared,
                () ->
                        Helion.allGatherMatmul(
                                group, shared, b, true, aOut, null, ready, splits, config),
                () -> Helion.copyEngineAllGatherWithProgress(aOut, shared, ready, splits),
                () -> new HelionResult.OnHost(aOut, product.get(), Optional.empty()));
    }

    /**
     * @param config the tiles; null for those that suit the GPU
     */
    static Calls<DeviceMatrix> onDevice(
            At<DeviceMatrix> at, CudaSite site, int splits, Helion.Config config) {
        ProductRun run = at.run();
        Fabric group = at.group();
        Gpu gpu = site.gpu();
        GpuStream stream = site.stream();
        int rank = group.rank();
        DeviceMatrix b = at.b();
        HelionShared<DeviceMatrix> shared =
                HelionCuda.empty(group, gpu, run.m(), run.k(), run.type());
        at.site().copy(at.shard(), shared.local());
        int words = run.ranks() * splits;
        long address = site.allocate((long) words * Integer.BYTES).address();
        DeviceProgress ready = new DeviceProgress(address, words);
        DeviceMatrix aOut = site.allocate(run.type(), run.m() * run.ranks(), run.k());
        return new Calls<>(
                "gated",
                shared,
                () ->
                        HelionCuda.allGatherMatmul(
                                group, gpu, shared, b, true, aOut, null, ready, splits, config,
                                stream),
                () ->
                        HelionCuda.copyEngineAllGatherWithProgress(
                                aOut, shared, ready, splits, stream),
                () ->
                        HelionCuda.matmulWithProgress(
                                aOut, shared, b, true, null, ready, splits, rank, config, stream));
    }

    @Override
    public long[] shape() {
        return new long[] {at.run().m() * at.run().ranks(), at.run().n()};
    }

    @Override
    public long fusedNs(View view) {
        if (last != null) {
            last.close();
            last = null;
        }
        long start = System.nanoTime();
        if (view == View.COMM_ONLY) {
            try (HelionGather gather = calls.gather().get()) {
                gather.await();
            }
        } else {
            last = (view == View.PIPELINED ? calls.whole() : calls.multiply()).get();
            last.await();
        }
        long elapsed = System.nanoTime() - start;
        if (view == View.PIPELINED) {
            // A GPU reports no spans: only start and end are known.
            timeline =
                    last.timeline()
                            .orElse(new Timeline(at.group().rank(), start, elapsed, List.of()));
        }
        return elapsed;
    }

    @Override
    public Timeline timeline() {
        return timeline;
    }

    /** The measured call's product, which was new: no other call has written it. */
    @Override
    public M product() {
        return last.c();
    }

    @Override
    public Optional<M> gathered() {
        return Optional.of(last.aOut());
    }

    @Override
    public RankReport report(String device, Measured measured, boolean exact, boolean equal) {
        return new RankReport(
                "helion",
                device,
                calls.engine(),
                Transport.of(at.group()).cores().cores(),
                1,
                Math.max(1, at.run().m() / splits),
                measured.times(),
                exact,
                equal,
                true,
                List.of(),
                List.of(),
                measured.timeline());
    }

    @Override
    public void close() {
        if (last != null) {
            last.close();
        }
        calls.shared().close();
    }
}
