package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.exec.CopyList.LaneCounters;
import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.TileSchedule.Counter;
import dev.weft.cuda.kernel.TimedSpan;
import dev.weft.exec.host.SentRuns;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;

/**
 * A rank's lanes as streams. After each copy its flag is written in stream order. Like copies, this
 * does not wait for a grid that fills the card. Writing a value costs the stream 2 us, a copy of
 * four bytes 10 (H200). One thread at a time.
 */
public final class CopyStreams implements Copies {

    private final Peers peers;

    /** Null if the peers' rows are in host memory: then they are there whatever this rank does. */
    private final DevicePeers linked;

    private DeviceLayout layout;
    private final CopyList list;
    private final List<List<Copy>> lanes;
    private final List<GpuStream> streams = new ArrayList<>();
    private final DeviceEvent[] done;
    private final DeviceEvent entered = new DeviceEvent();
    private final boolean[][] announced;
    private final int[] next;

    /** Null if every shard has its own place. */
    private final Launches launches;

    /** Null if there are no counters. */
    private final LaneCounters counters;

    private final List<List<TimedSpan>> spans = new ArrayList<>();

    /**
     * By flag: recorded behind a copy that this rank pulls; null if nothing waits for it, or a peer
     * pushes.
     */
    private final DeviceEvent[] arrived;

    private final long deadlineNs;

    /** By lane and first copy; null if every copy is issued by itself. */
    private final Run[][] runs;

    /** By flag: the copy, if a peer pushes its rows. */
    private final List<List<Raised>> pushed;

    /** Of each lane of a peer that pushes to this rank, the last copy. */
    private final List<Raised> lastPushed = new ArrayList<>();

    /** Whether the call is captured: then its lanes begin and end with the caller's stream. */
    private boolean captured;

    private boolean captureNext;

    /**
     * Whether calls are in graphs, which may be launched behind others without the host's doing.
     */
    private boolean inGraphs;

    private final List<DeviceEvent> captureEnds = new ArrayList<>();

    /** The latest call whose copies have begun. */
    private int begun;

    private final int firstFlag;
    private final Hook hook;

    /** What tests queue on a lane's stream, to hold it back there. */
    public interface Hook {

        /** Changes nothing. */
        Hook NONE = new Hook() {};

        default void beforeCopy(Copy copy, GpuStream lane) {}

        /**
         * Publishes the copy's flag.
         *
         * @param value the call's number
         */
        default void writeFlag(Copy copy, int value, IntConsumer write) {
            write.accept(value);
        }

        /** After the copy's flag and before the lane's counter. */
        default void beforeCounter(Copy copy, GpuStream lane) {}
    }

    /**
     * Copies of a lane that are one copy: see {@link CopyList#adjacent}.
     *
     * @param end the copy behind them
     * @param flags their addresses
     */
    private record Run(int end, long[] flags) {}

    private Run[] runs(List<Copy> lane) {
        Run[] result = new Run[lane.size()];
        int[] ends = CopyList.adjacent(lane, layout);
        for (int first = 0; first < lane.size(); first = ends[first]) {
            List<Copy> copies = lane.subList(first, ends[first]);
            result[first] =
                    new Run(
                            ends[first],
                            copies.stream()
                                    .mapToLong(copy -> flags(copy.to()) + 4L * copy.flag())
                                    .toArray());
        }
        return result;
    }

    /**
     * @param launches what multiplies shards that share buffers; null if every shard has a place of
     *     its own
     * @param counters which each copy raises; null if there are none
     * @param firstFlag of the plan, at every rank
     * @param arrivals whether {@link #awaitArrival} will be called
     * @param joinsCopies whether rows lie in host memory and are multiplied at once: then they come
     *     in as few copies as can be, of which each takes 5 us besides its bytes (H200)
     */
    public CopyStreams(
            Peers peers,
            DeviceLayout layout,
            CopyList list,
            Launches launches,
            LaneCounters counters,
            int firstFlag,
            boolean arrivals,
            boolean joinsCopies,
            long deadlineNs,
            Hook hook) {
        this.peers = peers;
        this.linked = peers instanceof DevicePeers devices ? devices : null;
        this.layout = layout;
        this.launches = launches;
        this.counters = counters;
        this.firstFlag = firstFlag;
        this.list = list;
        this.lanes = list.lanes();
        this.deadlineNs = deadlineNs;
        this.hook = hook;
        this.runs =
                joinsCopies && counters == null
                        ? lanes.stream().map(this::runs).toArray(Run[][]::new)
                        : null;
        this.next = new int[lanes.size()];
        this.pushed = new ArrayList<>(Collections.nCopies(list.flags(), List.of()));
        for (CopyList.Line line : list.arriving()) {
            if (line.by() != list.rank()) {
                for (Copy copy : line.copies()) {
                    pushed.set(copy.flag(), List.of(list.raised(copy, line)));
                }
                lastPushed.add(list.raised(line.copies().getLast(), line));
            }
        }
        this.arrived = new DeviceEvent[list.flags()];
        for (Copy copy : lanes.stream().flatMap(List::stream).toList()) {
            if (arrivals && copy.to() == list.rank()) {
                arrived[copy.flag()] = new DeviceEvent();
            }
        }
        this.done = new DeviceEvent[lanes.size()];
        this.announced = new boolean[lanes.size()][layout.shards().ranks()];
        for (int i = 0; i < done.length; i++) {
            streams.add(GpuStream.urgent());
            done[i] = DeviceEvent.timed();
            List<TimedSpan> ofLane = new ArrayList<>();
            for (int c = 0; launches != null && c < lanes.get(i).size(); c++) {
                ofLane.add(new TimedSpan());
            }
            spans.add(ofLane);
        }
    }

    @Override
    public void setRows(Shards shards) {
        layout = layout.with(shards);
    }

    /** Where the flags of this plan are at a rank. */
    private long flags(int rank) {
        return peers.flags(rank) + 4L * firstFlag;
    }

    /** The next call is captured into a graph, by events that serve nothing else. */
    void captureNext() {
        captureNext = true;
        inGraphs = true;
        for (int lane = captureEnds.size(); lane < lanes.size(); lane++) {
            captureEnds.add(new DeviceEvent());
        }
    }

    private DeviceEvent end(int lane) {
        return captured ? captureEnds.get(lane) : done[lane];
    }

    /** How many rows the call has of a copy's. */
    private long rows(Copy copy) {
        return layout.count(copy.source(), copy.firstRow(), copy.rows());
    }

    @Override
    public int count() {
        return runs == null
                ? lanes.stream().mapToInt(List::size).sum()
                : (int)
                        Arrays.stream(runs)
                                .flatMap(Arrays::stream)
                                .filter(Objects::nonNull)
                                .count();
    }

    /**
     * Lets the lanes start, with the first copy of each that can. Rows in host memory are there
     * whatever {@code stream} does, but what a launch of a graph reads may still be in their place;
     * other rows wait for what is on it now.
     */
    @Override
    public void begin(int call, GpuStream stream) {
        begun = call;
        captured = captureNext;
        captureNext = false;
        boolean enters = linked != null || inGraphs;
        if (enters) {
            entered.record(stream);
        }
        for (int lane = 0; lane < lanes.size(); lane++) {
            Arrays.fill(announced[lane], false);
            next[lane] = 0;
            if (enters) {
                entered.join(streams.get(lane));
            }
            issueNext(lane, call);
        }
    }

    /**
     * All other copies, and the products that are launched between them. Lanes take turns, and one
     * whose rows a peer has not queued yet lets the others go first.
     */
    @Override
    public void issueRest(int call) {
        long progressNs = System.nanoTime();
        while (true) {
            boolean issued = launches != null && launches.launchNext();
            int waiting = -1;
            for (int lane = 0; lane < lanes.size(); lane++) {
                if (next[lane] < lanes.get(lane).size()) {
                    issued |= issueNext(lane, call);
                    waiting = lane;
                }
            }
            if (waiting < 0 && (launches == null || !launches.hasNext())) {
                return;
            }
            if (issued) {
                progressNs = System.nanoTime();
            } else if (System.nanoTime() - progressNs > deadlineNs / 2) {
                // Nothing else can be queued: one wait may block, and name the peer that is at
                // fault.
                awaitPeer(waiting, call);
                progressNs = System.nanoTime();
            } else {
                Thread.onSpinWait();
            }
        }
    }

    /** Blocks for what a lane waits for or, if none does, for what the next product waits for. */
    private void awaitPeer(int lane, int call) {
        if (lane < 0) {
            launches.awaitNext();
        } else {
            linked.awaitQueued(lanes.get(lane).get(next[lane]).waits(), call);
        }
    }

    @Override
    public void beginForArrivals(int call, GpuStream stream) {
        issue(call, stream);
    }

    @Override
    public void join(GpuStream stream) {
        for (int lane = 0; lane < lanes.size(); lane++) {
            end(lane).record(streams.get(lane));
            end(lane).join(stream);
        }
    }

    /**
     * Rows from host memory are there when the product has seen their flags. A wait for the copies
     * would only delay the end of the call, by 1 to 2 us on an H200.
     */
    @Override
    public void endBehindProduct(GpuStream stream) {
        if (linked != null || captured) {
            join(stream);
            return;
        }
        for (int lane = 0; lane < lanes.size(); lane++) {
            done[lane].record(streams.get(lane));
        }
    }

    /** Whether the lane's next copy could be queued. */
    private boolean issueNext(int lane, int call) {
        if (next[lane] == lanes.get(lane).size()) {
            return false;
        }
        if (runs != null && hook == Hook.NONE) {
            issue(runs[lane][next[lane]], lane, call);
            return true;
        }
        Copy copy = lanes.get(lane).get(next[lane]);
        GpuStream on = streams.get(lane);
        if (!copy.waits().isEmpty()) {
            if (!linked.areQueued(copy.waits(), call)) {
                return false;
            }
            linked.awaitDone(copy.waits(), on);
        }
        int index = next[lane];
        next[lane]++;
        int other = copy.from() == list.rank() ? copy.to() : copy.from();
        if (linked != null && !announced[lane][other]) {
            // Its rows are there to be read, or its buffer is free to be written.
            announced[lane][other] = true;
            linked.awaitRows(other, call, on);
        }
        if (launches != null) {
            spans.get(lane).get(index).begin(call, on);
        }
        hook.beforeCopy(copy, on);
        long rows = rows(copy);
        if (rows > 0) {
            move(copy, rows, call & 1, on);
        }
        if (launches != null) {
            spans.get(lane).get(index).end(on);
        }
        long words = flags(copy.to());
        long flag = words + 4L * copy.flag();
        hook.writeFlag(copy, call, value -> CudaStreams.writeValue32(on.handle(), flag, value));
        if (counters != null) {
            hook.beforeCounter(copy, on);
            Counter counter = counters.lanes().get(lane).get(index);
            CudaStreams.writeValue32(on.handle(), words + 4L * counter.word(), counter.value(call));
        }
        if (copy.to() != list.rank()) {
            linked.raise(copy.to(), copy.flag(), lane, copy.toSlot(), call, on);
        } else if (arrived[copy.flag()] != null) {
            arrived[copy.flag()].record(on);
        }
        return true;
    }

    /** One copy instead of several, and then the flags of all of them. */
    private void issue(Run run, int lane, int call) {
        GpuStream on = streams.get(lane);
        Copy first = null;
        long rows = 0;
        for (int i = next[lane]; i < run.end(); i++) {
            Copy copy = lanes.get(lane).get(i);
            long count = rows(copy);
            first = first == null && count > 0 ? copy : first;
            rows += count;
        }
        if (first != null) {
            move(first, rows, call & 1, on);
        }
        CudaStreams.writeValues32(on.handle(), run.flags(), call);
        next[lane] = run.end();
    }

    /**
     * Lets {@code stream} wait for the rows of a flag, by an event that is recorded: all copies of
     * this rank are queued, and what a peer pushes is waited for until it has queued it. A stream
     * that waited for the flag itself could stand before the copy in a queue of the hardware.
     */
    @Override
    public void awaitArrival(int flag, int call, GpuStream stream) {
        if (arrived[flag] != null) {
            arrived[flag].join(stream);
            return;
        }
        linked.awaitQueued(pushed.get(flag), call);
        linked.awaitDone(pushed.get(flag), stream);
    }

    @Override
    public void awaitPushed(int call, GpuStream stream) {
        if (linked != null) {
            linked.awaitQueued(lastPushed, call);
            linked.awaitDone(lastPushed, stream);
        }
    }

    /** So many rows from the copy's first one on. */
    private void move(Copy copy, long rows, int parity, GpuStream on) {
        long from = place(copy.from(), copy, copy.fromSlot(), parity);
        long to = place(copy.to(), copy, copy.toSlot(), parity);
        long width = copy.cols() * layout.dtype().bytes();
        CudaMemory.copy2dAsync(
                to, layout.pitchBytes(), from, layout.pitchBytes(), width, rows, on.handle());
    }

    private long place(int rank, Copy copy, int slot, int parity) {
        return peers.buffer(rank, layout.buffer(rank, copy.source(), slot, parity))
                + layout.at(rank, copy.source(), copy.firstRow(), copy.firstCol());
    }

    /**
     * When copies of shards that share buffers began and ended, since the event at the call's
     * begin.
     */
    List<Timeline.Track> tracks(int call, DeviceEvent begin) {
        List<Timeline.Track> tracks = new ArrayList<>();
        for (int lane = 0; lane < lanes.size(); lane++) {
            List<Timeline.Span> ofLane = new ArrayList<>();
            for (int i = 0; i < spans.get(lane).size(); i++) {
                TimedSpan span = spans.get(lane).get(i);
                if (span.isOf(call)) {
                    Copy copy = lanes.get(lane).get(i);
                    ofLane.add(
                            list.span(
                                    copy,
                                    layout.dtype().bytes(),
                                    span.beginNs(begin),
                                    span.endNs(begin)));
                }
            }
            tracks.add(new Timeline.Track("copies-" + lane, ofLane));
        }
        return tracks;
    }

    @Override
    public long copiedNs(DeviceEvent begin) {
        long last = 0;
        for (DeviceEvent end : done) {
            if (!end.isDoneWithin(deadlineNs, () -> {})) {
                return 0;
            }
            last = Math.max(last, end.nsSince(begin));
        }
        return last;
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        List<FailureReport.Sent> all = new ArrayList<>();
        for (int lane = 0; begun == call && lane < lanes.size(); lane++) {
            List<Copy> copies = lanes.get(lane);
            all.add(
                    SentRuns.of(
                            "copies-" + lane, next[lane], copies.size(), i -> run(copies.get(i))));
        }
        return all;
    }

    private FailureReport.Run run(Copy copy) {
        int chunk = list.origins().get(copy.flag()).chunk();
        return new FailureReport.Run(
                Awaited.CHUNK,
                peers.worldRank(copy.from()),
                peers.worldRank(copy.to()),
                peers.worldRank(copy.source()),
                chunk,
                chunk);
    }

    @Override
    public void close() {
        // Copies may be under way, if the product has given up.
        Arrays.stream(done).forEach(end -> end.isDoneWithin(deadlineNs, () -> {}));
        streams.forEach(GpuStream::close);
        Arrays.stream(done).forEach(DeviceEvent::close);
        Arrays.stream(arrived).filter(Objects::nonNull).forEach(DeviceEvent::close);
        entered.close();
        captureEnds.forEach(DeviceEvent::close);
        spans.stream().flatMap(List::stream).forEach(TimedSpan::close);
    }
}
