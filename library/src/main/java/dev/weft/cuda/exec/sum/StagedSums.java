package dev.weft.cuda.exec.sum;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.HostStaging;
import dev.weft.cuda.exec.sum.SumCopyList.Move;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.List;

/** Sums of ranks which this GPU does not reach: see {@link HostStaging}. */
public final class StagedSums implements SumExchange {

    private final HostLanes lanes;
    private final HostStaging staging;
    private final long[] firstCols;

    /** By copy in: the wait for its sums. */
    private final Awaited[] arrivals;

    /**
     * Copies out, in the order in which they are queued: the number of the step that makes each.
     */
    private final int[] makers;

    /** Steps whose sums are copied out: how many copies each has, and how many are to end yet. */
    private final List<Step> made = new ArrayList<>();

    private final int[] pieces;
    private final int[] left;

    /**
     * @param lanes between the ranks' host memories; closed with this
     * @param columns of each product; in host memory their rows are side by side
     * @param productNs the longest time that a call's product may take
     */
    public StagedSums(
            Transport fabric,
            HostLanes lanes,
            SumCopyList list,
            List<Long> columns,
            long productNs) {
        this.lanes = lanes;
        this.firstCols = new long[columns.size()];
        for (int i = 1; i < firstCols.length; i++) {
            firstCols[i] = firstCols[i - 1] + columns.get(i - 1);
        }
        this.arrivals =
                list.in().stream().map(move -> lanes.arrival(move.copy())).toArray(Awaited[]::new);
        this.makers =
                list.leaving()
                        .mapToInt(
                                move -> {
                                    if (!made.contains(move.maker())) {
                                        made.add(move.maker());
                                    }
                                    return made.indexOf(move.maker());
                                })
                        .toArray();
        this.pieces = new int[made.size()];
        this.left = new int[made.size()];
        for (int maker : makers) {
            pieces[maker]++;
        }
        // What the caller has queued before may take long.
        this.staging =
                new HostStaging(
                        fabric, lanes, makers.length, Long.MAX_VALUE, productNs, this::copied);
    }

    /** Tells lanes of chunks of which all pieces are in host memory. */
    private void copied(int copy) {
        if (copy == 0) {
            System.arraycopy(pieces, 0, left, 0, pieces.length);
        }
        if (--left[makers[copy]] == 0) {
            lanes.done(made.get(makers[copy]));
        }
    }

    /** Lanes between memory for the sums of these plans. Collective. */
    public static HostLanes lanes(Transport fabric, List<StepPlan> plans, Chunks chunks) {
        List<StepPlan> single = plans.stream().map(StagedSums::single).toList();
        // A is on the devices alone.
        return new HostLanes(fabric, single, chunks, DType.FP32, null);
    }

    /** A rank starts a call once it has ended the one before, so one copy serves all calls. */
    private static StepPlan single(StepPlan plan) {
        List<Buffer> buffers =
                plan.buffers().stream()
                        .map(
                                one ->
                                        one.holdsSums()
                                                ? new Buffer(
                                                        one.name(),
                                                        one.kind(),
                                                        one.open(),
                                                        true,
                                                        one.rows(),
                                                        one.cols())
                                                : one)
                        .toList();
        return new StepPlan(plan.rank(), buffers, plan.workers());
    }

    @Override
    public boolean isStaged() {
        return true;
    }

    @Override
    public void begin(int call, GpuStream stream) {
        staging.begin(call, stream);
    }

    @Override
    public void awaitArrival(Move move, int call) {
        try {
            staging.awaitArrival(move.copy(), arrivals[move.word()]);
        } catch (RuntimeException e) {
            // Their waits have ended with the fabric: an error tells what they have sent.
            lanes.await();
            throw e;
        }
    }

    @Override
    public void setRows(Shards shards) {
        lanes.setRows(shards);
    }

    @Override
    public Place incoming(Move move, int call, long row) {
        return place(move, call);
    }

    @Override
    public Place outgoing(Move move, int call, long row) {
        return place(move, call);
    }

    private Place place(Move move, int call) {
        Matrix sums = lanes.matrix(move.part().buffer(), call);
        long at = sums.offset(move.part().firstRow(), firstCols[move.product()] + move.col());
        return new Place(sums.data().address() + at, sums.rowPitch() * sums.dtype().bytes());
    }

    @Override
    public void copiedOut(int call, GpuStream on) {
        staging.copiedOut(call, on);
    }

    @Override
    public void end() {
        staging.end();
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        return staging.sent(call);
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return staging.tracks(startNs);
    }

    @Override
    public void close() {
        staging.close();
    }
}
