package dev.weft.cuda.exec;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.StallException;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;
import java.util.Arrays;

/**
 * Ranks on GPUs that read and write each other's device memory. Each rank shows in a region of the
 * fabric:
 *
 * <pre>
 *    0  the words of {@link HostSteps}
 *   64  {@link PeerPointers}: buffer 0, buffer 1, flags, results that peers may read |
 *       events: announced 0, 1, ended 0, 1, released 0, 1, lane 0 to slot 0, 1, lane 1 to slot 0, ...
 *       then a word for each flag: the latest call for which its sender has queued the copy
 *       then a word: the shards, over all calls, whose release is queued
 * </pre>
 *
 * <p>A rank that forwards rows waits for an event that is already recorded, not for a flag. Streams
 * share hardware queues, so queued work must never wait for work that is queued later: with flags,
 * a ring of four ranks on one GPU deadlocked.
 */
public final class DevicePeers implements Peers {

    private static final int RESULTS = 3;
    private static final int CALL_EVENTS = 4;
    private static final int LANE_EVENTS = CALL_EVENTS + 2;

    private final Transport fabric;
    private final Region region;
    private final HostSteps steps;
    private final int pushedAt;
    private final long releasedAt;
    private final PeerPointers pointers;

    /** How many memories each rank shows; its events come after them. */
    private final int memories;

    /** This rank's, those of a call and two for each lane. */
    private final long[] ownEvents;

    private boolean released;

    /**
     * Collective; all ranks have the same number of lanes, flags and memories.
     *
     * @param gpu on which this rank's {@code memories} lie: buffer 0, buffer 1, flags, and results
     *     that peers may read
     */
    public DevicePeers(Transport fabric, Gpu gpu, int lanes, int flagCount, long... memories) {
        this.fabric = fabric;
        this.memories = memories.length;
        this.ownEvents = new long[LANE_EVENTS + 2 * lanes];
        Arrays.setAll(
                ownEvents,
                i -> CudaStreams.createEvent(false, PeerPointers.betweenProcesses(fabric)));
        long[] own = Arrays.copyOf(memories, memories.length + ownEvents.length);
        System.arraycopy(ownEvents, 0, own, memories.length, ownEvents.length);
        this.pushedAt = HostSteps.BYTES + PeerPointers.bytes(own.length);
        this.releasedAt = pushedAt + 4L * flagCount;
        this.region = fabric.allocate(releasedAt + 4);
        this.steps = new HostSteps(fabric, region);
        this.pointers =
                new PeerPointers(fabric, gpu, region, HostSteps.BYTES, memories.length, own);
    }

    private int rank() {
        return fabric.rank();
    }

    private int size() {
        return fabric.size();
    }

    @Override
    public HostSteps steps() {
        return steps;
    }

    @Override
    public int worldRank(int of) {
        return fabric.worldRank(of);
    }

    @Override
    public long buffer(int of, int parity) {
        return pointers.get(of, parity);
    }

    @Override
    public long flags(int of) {
        return pointers.get(of, 2);
    }

    /** Where the result number {@code index} of rank {@code of} starts, as this GPU sees it. */
    public long result(int of, int index) {
        return pointers.get(of, RESULTS + index);
    }

    private long event(int of, int index) {
        return pointers.get(of, memories + index);
    }

    private long announcedEvent(int of, int call) {
        return event(of, call & 1);
    }

    private long endedEvent(int of, int call) {
        return event(of, 2 + (call & 1));
    }

    /**
     * Returns when no peer reads this rank's rows of {@code call} any more. The peers have queued
     * that call: this rank has awaited it.
     *
     * @param results whether peers also read what the call gave, until they start the next one;
     *     they have announced that
     */
    public void awaitUnread(int call, boolean results) {
        for (int r = 0; r < size(); r++) {
            if (r != rank()) {
                awaitEvent(r, results ? announcedEvent(r, call + 1) : endedEvent(r, call));
            }
        }
    }

    /** Returns when rank {@code of} has ended {@code call} on its GPU; it has queued it. */
    public void awaitEnded(int of, int call) {
        awaitEvent(of, endedEvent(of, call));
    }

    private void awaitEvent(int of, long event) {
        long start = System.nanoTime();
        while (!CudaStreams.queryEvent(event)) {
            if (System.nanoTime() - start > steps.deadlineNs()) {
                throw new StallException(
                        worldRank(rank()),
                        worldRank(of),
                        -1,
                        -1,
                        "the end of rank " + worldRank(of) + "'s call on the GPU",
                        fabric.deadline());
            }
            Thread.onSpinWait();
        }
    }

    /**
     * Before call {@code call} writes its buffers: lets {@code stream} wait for the ranks that read
     * them.
     *
     * @param both whether the call before may have read them too
     */
    public void awaitReuse(int call, boolean both, GpuStream stream) {
        for (int r = 0; r < size(); r++) {
            if (r != rank()) {
                CudaStreams.waitEvent(stream.handle(), endedEvent(r, call));
                if (both) {
                    CudaStreams.waitEvent(stream.handle(), endedEvent(r, call - 1));
                }
            }
        }
    }

    /**
     * This rank's rows for {@code call} are in its buffer once {@code stream} has come here. To be
     * called before the call is announced, so that peers wait for an event that is recorded.
     */
    public void rowsAreThere(int call, GpuStream stream) {
        CudaStreams.record(announcedEvent(rank(), call), stream.handle());
    }

    /** Lets {@code stream} wait until a peer's rows of {@code call} are there. */
    public void awaitRows(int peer, int call, GpuStream stream) {
        CudaStreams.waitEvent(stream.handle(), announcedEvent(peer, call));
    }

    /**
     * Lets {@code stream} wait until the rows of every peer on the same GPU are there. A grid that
     * fills the GPU and waits for rows must not start before: the kernels that make those rows
     * would wait behind it.
     */
    public void awaitSharers(int call, GpuStream stream) {
        for (int r = 0; r < size(); r++) {
            if (pointers.sharesGpu(r)) {
                awaitRows(r, call, stream);
            }
        }
    }

    @Override
    public boolean awaitRelease(boolean failed) {
        released = steps.awaitDrained(failed);
        return released;
    }

    /** All that this rank does for {@code call} comes before this place in {@code stream}. */
    public void ended(int call, GpuStream stream) {
        CudaStreams.record(endedEvent(rank(), call), stream.handle());
    }

    /** Which peer brings the rows of a flag, on which of its lanes, and to which slot. */
    public record Bringer(int flag, int rank, int lane, int slot, Awaited awaited) {

        public Bringer {
            // It queues copies of this call and, once all ranks have announced that, of the next.
            awaited = awaited.within(1);
        }
    }

    private static int laneEvent(int lane, int slot) {
        // Ping-pong buffers have slots 0 and 1; otherwise there are many slots, and one event is
        // enough.
        return LANE_EVENTS + 2 * lane + (slot & 1);
    }

    /**
     * A copy into {@code slot} of {@code to} is queued on this rank's stream of lane {@code lane}:
     * the rank that forwards or multiplies the rows may queue that now.
     */
    public void pushed(int to, int flag, int lane, int slot, int call, GpuStream stream) {
        CudaStreams.record(ownEvents[laneEvent(lane, slot)], stream.handle());
        // Release: pairs with the acquire in isPushed; the event is recorded by then.
        fabric.signal(region, to, pushedAt + 4L * flag, call);
    }

    /** Whether the peer that brings the rows of a flag has queued the copy for {@code call}. */
    public boolean isPushed(Bringer of, int call) {
        return fabric.reached(region, rank(), pushedAt + 4L * of.flag(), call, of.awaited());
    }

    /** Returns when {@link #isPushed}; throws if the peer has failed. */
    public void awaitQueued(Bringer of, int call) {
        fabric.await(region, rank(), pushedAt + 4L * of.flag(), call, of.awaited());
    }

    /** Lets {@code stream} wait for a copy that is queued. */
    public void awaitPushed(Bringer of, GpuStream stream) {
        long event = event(of.rank(), laneEvent(of.lane(), of.slot()));
        CudaStreams.waitEvent(stream.handle(), event);
    }

    /** What the release word has reached with shard {@code number} of a call. */
    private int count(int call, int number) {
        return (call - 1) * (size() - 1) + number;
    }

    /**
     * Shard {@code number} of the call, in the order of releases, is no longer needed once {@code
     * stream} has come here.
     */
    public void released(int call, int number, GpuStream stream) {
        CudaStreams.record(ownEvents[CALL_EVENTS + (number & 1)], stream.handle());
        // Release: pairs with the acquire in isReleased; the event is recorded by then.
        fabric.signal(region, rank(), releasedAt, count(call, number));
    }

    /** Whether {@code of} has queued the release of shard {@code number}. */
    public boolean isReleased(int of, int call, int number) {
        return fabric.reached(region, of, releasedAt, count(call, number), buffer(of));
    }

    /** A rank has released all shards of the next call at most. */
    private Awaited buffer(int of) {
        return Awaited.of(Awaited.BUFFER, of).within(2 * size());
    }

    /** Returns when {@link #isReleased}; throws if the peer has failed. */
    public void awaitReleaseQueued(int of, int call, int number) {
        fabric.await(region, of, releasedAt, count(call, number), buffer(of));
    }

    /** Lets {@code stream} wait for a release that is queued. */
    public void awaitReleased(int of, int number, GpuStream stream) {
        long event = event(of, CALL_EVENTS + (number & 1));
        CudaStreams.waitEvent(stream.handle(), event);
    }

    /** A peer frees what this rank has opened only after this rank has closed it. */
    @Override
    public void close() {
        boolean others = pointers.closeOpened();
        if (released && others) {
            steps.awaitUnmapped();
        }
        Arrays.stream(ownEvents).forEach(CudaStreams::destroyEvent);
        region.close();
    }
}
