package dev.weft.cuda.exec;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.StallException;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;
import java.lang.foreign.MemorySegment;

/**
 * Ranks on GPUs that read and write each other's device memory: that of threads of this process by
 * address, that of other processes by CUDA's interprocess handles. Each rank shows its addresses
 * and handles in a region of the fabric:
 *
 * <pre>
 *    0  the words of {@link HostSteps}
 *   64  process id | GPU's ordinal | its identity
 *   88  buffer 0, buffer 1, flags | events: announced 0, 1, ended 0, 1, lane 0, 1, ...
 *       then the same again as interprocess handles, 64 bytes each
 *       then a word for each flag: the latest call for which its sender has queued the copy
 * </pre>
 *
 * <p>A rank that forwards rows waits for an event that is already recorded, not for a flag. Streams
 * share hardware queues, so queued work must never wait for work that is queued later: with flags,
 * a ring of four ranks on one GPU deadlocked.
 */
public final class DevicePeers implements Peers {

    private static final int PROCESS_AT = HostSteps.BYTES;
    private static final int GPU_AT = 72;
    private static final int IDENTITY_AT = 80;
    private static final int POINTERS_AT = 88;
    private static final int MEMORIES = 3;
    private static final int CALL_EVENTS = 4;

    private final Transport fabric;
    private final Region region;
    private final HostSteps steps;
    private final int handlesAt;
    private final int pushedAt;

    /** By rank: the three memories, the four events of a call, and one for each lane. */
    private final long[][] pointers;

    private final boolean[] opened;
    private final boolean[] sharesGpu;
    private boolean released;

    /**
     * Collective; all ranks have the same number of lanes and flags.
     *
     * @param gpu on which this rank's {@code memories} lie: buffer 0, buffer 1, flags
     */
    public DevicePeers(Transport fabric, Gpu gpu, int lanes, int flagCount, long... memories) {
        this.fabric = fabric;
        this.pointers = new long[fabric.size()][];
        this.opened = new boolean[fabric.size()];
        this.sharesGpu = new boolean[fabric.size()];
        int shown = MEMORIES + CALL_EVENTS + lanes;
        this.handlesAt = POINTERS_AT + 8 * shown;
        this.pushedAt = handlesAt + CudaMemory.IPC_HANDLE_BYTES * shown;
        this.region = fabric.allocate(pushedAt + 4L * flagCount);
        this.steps = new HostSteps(fabric, region);
        show(gpu, memories, shown);
        fabric.barrier();
        for (int r = 0; r < fabric.size(); r++) {
            if (r != fabric.rank()) {
                pointers[r] = look(r, gpu, shown);
            }
        }
        // No peer may be at work before all are ready: what a grid waits for must not wait for it.
        fabric.barrier();
    }

    private void show(Gpu gpu, long[] memories, int shown) {
        long[] own = new long[shown];
        System.arraycopy(memories, 0, own, 0, MEMORIES);
        boolean others = fabric.size() > 1 && !fabric.kind().equals("threads");
        for (int i = MEMORIES; i < own.length; i++) {
            own[i] = CudaStreams.createEvent(false, others);
        }
        pointers[fabric.rank()] = own;
        MemorySegment at = region.part(fabric.rank());
        at.set(JAVA_LONG, PROCESS_AT, ProcessHandle.current().pid());
        at.set(JAVA_LONG, GPU_AT, gpu.ordinal());
        at.set(JAVA_LONG, IDENTITY_AT, gpu.identity());
        for (int i = 0; i < own.length; i++) {
            at.set(JAVA_LONG, POINTERS_AT + 8L * i, own[i]);
            if (others) {
                byte[] handle =
                        i < MEMORIES
                                ? CudaMemory.ipcHandle(own[i])
                                : CudaStreams.ipcEventHandle(own[i]);
                MemorySegment.copy(
                        MemorySegment.ofArray(handle),
                        0,
                        at,
                        handlesAt + (long) i * handle.length,
                        handle.length);
            }
        }
    }

    private long[] look(int peer, Gpu gpu, int shown) {
        MemorySegment at = region.part(peer);
        long[] theirs = new long[shown];
        boolean sameProcess = at.get(JAVA_LONG, PROCESS_AT) == ProcessHandle.current().pid();
        int theirGpu = (int) at.get(JAVA_LONG, GPU_AT);
        if (sameProcess && theirGpu != gpu.ordinal()) {
            gpu.reach(Gpu.open(theirGpu));
        }
        for (int i = 0; i < theirs.length; i++) {
            if (sameProcess) {
                theirs[i] = at.get(JAVA_LONG, POINTERS_AT + 8L * i);
            } else {
                byte[] handle =
                        at.asSlice(
                                        handlesAt + (long) i * CudaMemory.IPC_HANDLE_BYTES,
                                        CudaMemory.IPC_HANDLE_BYTES)
                                .toArray(JAVA_BYTE);
                theirs[i] =
                        i < MEMORIES
                                ? CudaMemory.ipcOpen(handle)
                                : CudaStreams.ipcOpenEvent(handle);
            }
        }
        opened[peer] = !sameProcess;
        sharesGpu[peer] = at.get(JAVA_LONG, IDENTITY_AT) == gpu.identity();
        return theirs;
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
        return pointers[of][parity];
    }

    @Override
    public long flags(int of) {
        return pointers[of][2];
    }

    private long announcedEvent(int of, int call) {
        return pointers[of][MEMORIES + (call & 1)];
    }

    private long endedEvent(int of, int call) {
        return pointers[of][MEMORIES + 2 + (call & 1)];
    }

    /**
     * Returns when no peer reads this rank's rows of {@code call} any more. The peers have queued
     * that call: this rank has awaited it.
     */
    public void awaitUnread(int call) {
        long start = System.nanoTime();
        for (int r = 0; r < size(); r++) {
            while (r != rank() && !CudaStreams.queryEvent(endedEvent(r, call))) {
                if (System.nanoTime() - start > steps.deadlineNs()) {
                    throw new StallException(
                            worldRank(rank()),
                            worldRank(r),
                            -1,
                            -1,
                            "the end of rank " + worldRank(r) + "'s call on the GPU",
                            fabric.deadline());
                }
                Thread.onSpinWait();
            }
        }
    }

    /**
     * Before call {@code call} writes its buffers: lets {@code stream} wait for who reads them.
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
            if (sharesGpu[r]) {
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

    /**
     * A copy into {@code to}'s buffer is queued on this rank's stream of lane {@code lane}: who
     * forwards the rows may queue that now.
     */
    public void pushed(int to, int flag, int lane, int call, GpuStream stream) {
        CudaStreams.record(pointers[rank()][MEMORIES + CALL_EVENTS + lane], stream.handle());
        // Release: pairs with the acquire in isPushed; the event is recorded by then.
        fabric.signal(region, to, pushedAt + 4L * flag, call);
    }

    /**
     * Whether the peer that brings the rows of {@code flag} has queued the copy for {@code call}.
     */
    public boolean isPushed(int flag, int call) {
        return fabric.reached(region, rank(), pushedAt + 4L * flag, call);
    }

    /** Lets {@code stream} wait for what {@code from} has queued on its lane {@code lane}. */
    public void awaitPushed(int from, int lane, GpuStream stream) {
        CudaStreams.waitEvent(stream.handle(), pointers[from][MEMORIES + CALL_EVENTS + lane]);
    }

    /** A peer frees what this rank has opened only after this rank has closed it. */
    @Override
    public void close() {
        boolean others = false;
        for (int r = 0; r < size(); r++) {
            if (opened[r]) {
                others = true;
                for (int i = 0; i < MEMORIES; i++) {
                    CudaMemory.ipcClose(pointers[r][i]);
                }
                destroyEvents(r);
            }
        }
        if (released && others) {
            steps.awaitUnmapped();
        }
        destroyEvents(rank());
        region.close();
    }

    private void destroyEvents(int of) {
        for (int i = MEMORIES; i < pointers[of].length; i++) {
            CudaStreams.destroyEvent(pointers[of][i]);
        }
    }
}
