package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.op.Result;
import dev.weft.op.Timeline;
import dev.weft.plan.Shards;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** What a call on a GPU gave; one for all calls of an operator. */
public final class DeviceResult implements Result<DeviceMatrix> {

    private final int rank;
    private final Shards shards;
    private final boolean keeps;
    private final boolean moves;
    private final CudaBuffers buffers;
    private final DeviceOperands operands;
    private final Copies copies;
    private final CallEvents events;

    /** Null if every shard has its own place. */
    private final Launches launches;

    private final DeviceTimeline timeline;
    private final CopyTimes copyTimes;
    private List<DeviceProduct> products = List.of();
    private boolean copied;
    private int gatheredCall;
    private int call;
    private long endNs;
    private long elapsedNs;
    private long gatherNs;
    private boolean alone;

    /**
     * @param keeps whether gathered A is there after a call
     * @param moves whether a call copies rows
     */
    public DeviceResult(
            int rank,
            Shards shards,
            boolean keeps,
            boolean moves,
            CudaBuffers buffers,
            DeviceOperands operands,
            Copies copies,
            CallEvents events,
            Launches launches,
            DeviceTimeline timeline,
            CopyTimes copyTimes) {
        this.rank = rank;
        this.shards = shards;
        this.keeps = keeps;
        this.moves = moves;
        this.buffers = buffers;
        this.operands = operands;
        this.copies = copies;
        this.events = events;
        this.launches = launches;
        this.timeline = timeline;
        this.copyTimes = copyTimes;
    }

    /** Rows are being gathered for this call, into the buffer of its parity. */
    public void gathers(int call) {
        gatheredCall = call;
    }

    /** The latest call that gathered. */
    public int gatheredCall() {
        return gatheredCall;
    }

    /**
     * A call has been awaited.
     *
     * @param multiplied the products that it launched
     * @param gathers whether it copied rows
     * @param gatheredNs how long the gather took if it came first, otherwise 0
     * @param last whether no later call is under way
     */
    public void ended(
            int endedCall,
            List<DeviceProduct> multiplied,
            boolean gathers,
            long tookNs,
            long gatheredNs,
            boolean last) {
        call = endedCall;
        products = multiplied;
        copied = gathers;
        endNs = System.nanoTime();
        elapsedNs = tookNs;
        gatherNs = gatheredNs;
        alone = last;
    }

    @Override
    public DeviceMatrix product(int index) {
        return operands.result(index);
    }

    @Override
    public Optional<DeviceMatrix> gathered() {
        return keeps ? Optional.of(buffers.gathered(gatheredCall & 1)) : Optional.empty();
    }

    @Override
    public long elapsedNs() {
        return elapsedNs;
    }

    @Override
    public long gatherNs() {
        return gatherNs;
    }

    /**
     * Every tile by the device's clock, and every copy as far as its flag or a wait for it tells,
     * else at one rate in between; of a ring with two buffers every copy and every shard's product,
     * with cuBLAS every product, at one rate. If rows go through host memory, the lanes between
     * hosts show every chunk. If another call was started behind this one, only the begin and the
     * end are known and, if it gathers first, the time in between.
     */
    @Override
    public Timeline timeline() {
        long startNs = endNs - elapsedNs;
        List<Timeline.Track> tracks = new ArrayList<>();
        if (launches != null && alone) {
            tracks.addAll(((CopyStreams) copies).tracks(call, events.beginOf(call)));
            tracks.add(launches.track(call, events.beginOf(call)));
            return new Timeline(rank, startNs, elapsedNs, tracks);
        }
        Timeline told =
                alone
                        ? timeline.of(
                                products,
                                events,
                                call,
                                endNs,
                                (times, zeroNs) -> copyTimes.tracks(times, zeroNs, copiedNs()))
                        : null;
        if (told == null) {
            return untold();
        }
        tracks.addAll(told.tracks());
        tracks.addAll(copies.tracks(told.startNs()));
        return new Timeline(rank, told.startNs(), elapsedNs, tracks);
    }

    /** When rows had come, as far as this rank knows; 0 if none were to. */
    private long copiedNs() {
        if (!copied || gatherNs > 0) {
            return gatherNs;
        }
        long ownNs = copies.copiedNs(events.beginOf(call));
        return ownNs > 0 ? ownNs : elapsedNs;
    }

    private Timeline untold() {
        long startNs = endNs - elapsedNs;
        List<Timeline.Track> tracks = new ArrayList<>();
        if (moves) {
            long peerRows = shards.totalRows() - shards.rows(rank);
            long end = gatherNs > 0 ? gatherNs : elapsedNs;
            tracks.add(track("copies", Timeline.Kind.TRANSFER, peerRows, 0, end));
        }
        long rows = shards.totalRows();
        if (operands.count() > 0) {
            tracks.add(track("compute", Timeline.Kind.COMPUTE, rows, gatherNs, elapsedNs));
        }
        if (alone) {
            // A later call would have left its spans there instead.
            tracks.addAll(copies.tracks(startNs));
        }
        return new Timeline(rank, startNs, elapsedNs, tracks);
    }

    private Timeline.Track track(
            String name, Timeline.Kind kind, long rows, long startNs, long finishNs) {
        return new Timeline.Track(
                name, List.of(Timeline.Span.local(kind, rank, rank, 0, rows, startNs, finishNs)));
    }
}
