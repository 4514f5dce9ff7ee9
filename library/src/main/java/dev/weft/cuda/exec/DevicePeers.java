package dev.weft.cuda.exec;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;
import java.util.Arrays;
import java.util.List;

/**
 * Ranks on GPUs that read and write each other's device memory. Each rank shows in a region of the
 * fabric:
 *
 * <pre>
 *    0  the words of {@link HostSteps}
 *  192  {@link PeerPointers}: buffer 0, buffer 1, flags, results that peers may read |
 *       events: announced 0, 1, ended 0, 1, product 0, 1, lane 0: 0, 1, lane 1: 0, ...
 *       then a word for each step that others wait for: the latest call for which it is queued
 * </pre>
 *
 * <p>A rank that forwards rows waits for an event that is already recorded, not for a flag. Streams
 * share hardware queues, so queued work must never wait for work that is queued later: with flags,
 * a ring of four ranks on one GPU deadlocked.
 */
public final class DevicePeers implements Peers {

    /**
     * A step of some rank, as others wait for it: a word tells their hosts that it is queued, and
     * an event tells their GPUs that it is done.
     *
     * @param at the rank that has the word
     * @param word its number there
     * @param by the rank that takes the step
     * @param lane of that rank, or {@link #PRODUCT}
     * @param parity which of the lane's two events is recorded behind it
     */
    public record Raised(int at, int word, int by, int lane, int parity, Awaited awaited) {

        public static final int PRODUCT = -1;

        public Raised {
            // It queues this call's work and, once all ranks have announced that, the next one's.
            awaited = awaited.within(1);
        }

        private boolean hasEventOf(Raised other) {
            return by == other.by && lane == other.lane && parity == other.parity;
        }
    }

    private static final int RESULTS = 3;
    private static final int CALL_EVENTS = 4;
    private static final int LANE_EVENTS = CALL_EVENTS + 2;

    private final Transport fabric;
    private final Region region;
    private final HostSteps steps;
    private final int queuedAt;
    private final PeerPointers pointers;

    /** How many memories each rank shows; its events come after them. */
    private final int memories;

    /** This rank's, those of a call and two for each lane. */
    private final long[] ownEvents;

    private boolean released;

    /**
     * Collective; all ranks have the same number of lanes, words and memories.
     *
     * @param gpu on which this rank's {@code memories} lie: buffer 0, buffer 1, flags, and results
     *     that peers may read
     */
    public DevicePeers(Transport fabric, Gpu gpu, int lanes, int words, long... memories) {
        this.fabric = fabric;
        this.memories = memories.length;
        this.ownEvents = new long[LANE_EVENTS + 2 * lanes];
        Arrays.setAll(
                ownEvents,
                i -> CudaStreams.createEvent(false, PeerPointers.betweenProcesses(fabric)));
        long[] own = Arrays.copyOf(memories, memories.length + ownEvents.length);
        System.arraycopy(ownEvents, 0, own, memories.length, ownEvents.length);
        this.queuedAt = HostSteps.BYTES + PeerPointers.bytes(own.length);
        this.region = fabric.allocate(queuedAt + 4L * Math.max(1, words));
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

    /** Likewise for all peers. */
    public void awaitAllRows(int call, GpuStream stream) {
        for (int r = 0; r < size(); r++) {
            if (r != rank()) {
                awaitRows(r, call, stream);
            }
        }
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

    private static int eventOf(int lane, int parity) {
        int product = CALL_EVENTS + (parity & 1);
        return lane == Raised.PRODUCT ? product : LANE_EVENTS + 2 * lane + (parity & 1);
    }

    /**
     * A step of this rank is queued on {@code stream}: what waits for it may be queued now.
     *
     * @param at the rank that has the word
     * @param lane whose event is recorded, or {@link Raised#PRODUCT}
     */
    public void raise(int at, int word, int lane, int parity, int call, GpuStream stream) {
        CudaStreams.record(ownEvents[eventOf(lane, parity)], stream.handle());
        // Release: pairs with the acquire in isQueued; the event is recorded by then.
        fabric.signal(region, at, queuedAt + 4L * word, call);
    }

    private boolean isQueued(Raised step, int call) {
        return fabric.reached(region, step.at(), queuedAt + 4L * step.word(), call, step.awaited());
    }

    /** Whether all these steps are queued. */
    public boolean areQueued(List<Raised> steps, int call) {
        for (int i = 0; i < steps.size(); i++) {
            if (!isQueued(steps.get(i), call)) {
                return false;
            }
        }
        return true;
    }

    /** Returns when they are queued; throws if a peer has failed. */
    public void awaitQueued(List<Raised> steps, int call) {
        for (int i = 0; i < steps.size(); i++) {
            Raised step = steps.get(i);
            fabric.await(region, step.at(), queuedAt + 4L * step.word(), call, step.awaited());
        }
    }

    /** Lets {@code stream} wait for steps that are queued, once for each event. */
    public void awaitDone(List<Raised> steps, GpuStream stream) {
        for (int i = 0; i < steps.size(); i++) {
            boolean again = false;
            for (int j = 0; j < i; j++) {
                again |= steps.get(j).hasEventOf(steps.get(i));
            }
            if (!again) {
                Raised step = steps.get(i);
                long event = event(step.by(), eventOf(step.lane(), step.parity()));
                CudaStreams.waitEvent(stream.handle(), event);
            }
        }
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
