package dev.weft.cuda.exec;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Region;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;
import java.lang.foreign.MemorySegment;

/**
 * Device memories and events of every rank, as this rank's GPU reaches them: those of threads of
 * this process by address, those of other processes by CUDA's interprocess handles. Each rank shows
 * its own in a region of the fabric:
 *
 * <pre>
 *  0  process id | GPU's ordinal | its identity
 * 24  the pointers, 8 bytes each
 *     then the same again as interprocess handles, 64 bytes each
 * </pre>
 */
public final class PeerPointers {

    private static final int PROCESS_AT = 0;
    private static final int GPU_AT = 8;
    private static final int IDENTITY_AT = 16;
    private static final int POINTERS_AT = 24;

    private final Fabric fabric;
    private final Gpu gpu;
    private final int memories;
    private final long[][] pointers;
    private final boolean[] opened;
    private final boolean[] sharesGpu;

    /**
     * Collective; all ranks pass the same number of them.
     *
     * @param at where in each rank's part of the region
     * @param memories how many of {@code own} are memories; the others are events
     */
    public PeerPointers(Fabric fabric, Gpu gpu, Region region, long at, int memories, long... own) {
        this.fabric = fabric;
        this.gpu = gpu;
        this.memories = memories;
        this.pointers = new long[fabric.size()][own.length];
        this.opened = new boolean[fabric.size()];
        this.sharesGpu = new boolean[fabric.size()];
        pointers[fabric.rank()] = own;
        try {
            show(own, region.part(fabric.rank()).asSlice(at));
            fabric.barrier();
            for (int r = 0; r < pointers.length; r++) {
                if (r != fabric.rank()) {
                    look(r, region.part(r).asSlice(at));
                }
            }
            // No peer may be at work before all are ready: what a grid waits for must not wait for
            // it. Nor may one free what others have yet to open.
            fabric.barrier();
        } catch (RuntimeException | Error e) {
            closeOpened();
            throw e;
        }
    }

    /** Bytes of a rank's part of the region. */
    public static int bytes(int shown) {
        return POINTERS_AT + (Long.BYTES + CudaMemory.IPC_HANDLE_BYTES) * shown;
    }

    /** Whether events must be such as other processes can open. */
    public static boolean betweenProcesses(Fabric fabric) {
        return fabric.size() > 1 && !fabric.kind().equals("threads");
    }

    private static long handleAt(int index, int shown) {
        return POINTERS_AT + 8L * shown + (long) CudaMemory.IPC_HANDLE_BYTES * index;
    }

    private void show(long[] own, MemorySegment at) {
        at.set(JAVA_LONG, PROCESS_AT, ProcessHandle.current().pid());
        at.set(JAVA_LONG, GPU_AT, gpu.ordinal());
        at.set(JAVA_LONG, IDENTITY_AT, gpu.identity());
        for (int i = 0; i < own.length; i++) {
            at.set(JAVA_LONG, POINTERS_AT + 8L * i, own[i]);
            if (betweenProcesses(fabric)) {
                byte[] handle =
                        i < memories
                                ? CudaMemory.ipcHandle(own[i])
                                : CudaStreams.ipcEventHandle(own[i]);
                MemorySegment.copy(
                        handle, 0, at, JAVA_BYTE, handleAt(i, own.length), handle.length);
            }
        }
    }

    private void look(int peer, MemorySegment at) {
        long[] theirs = pointers[peer];
        boolean sameProcess = at.get(JAVA_LONG, PROCESS_AT) == ProcessHandle.current().pid();
        int theirGpu = (int) at.get(JAVA_LONG, GPU_AT);
        if (sameProcess && theirGpu != gpu.ordinal()) {
            gpu.reach(Gpu.open(theirGpu));
        }
        opened[peer] = !sameProcess;
        sharesGpu[peer] = at.get(JAVA_LONG, IDENTITY_AT) == gpu.identity();
        for (int i = 0; i < theirs.length; i++) {
            if (sameProcess) {
                theirs[i] = at.get(JAVA_LONG, POINTERS_AT + 8L * i);
            } else {
                byte[] handle = new byte[CudaMemory.IPC_HANDLE_BYTES];
                MemorySegment.copy(
                        at, JAVA_BYTE, handleAt(i, theirs.length), handle, 0, handle.length);
                theirs[i] =
                        i < memories
                                ? CudaMemory.ipcOpen(handle)
                                : CudaStreams.ipcOpenEvent(handle);
            }
        }
    }

    public long get(int rank, int index) {
        return pointers[rank][index];
    }

    /** Whether a peer is on this rank's GPU. */
    public boolean sharesGpu(int peer) {
        return sharesGpu[peer];
    }

    /** Closes what other processes have shown; returns whether there was any. */
    public boolean closeOpened() {
        boolean any = false;
        for (int r = 0; r < opened.length; r++) {
            for (int i = 0; opened[r] && i < pointers[r].length; i++) {
                long pointer = pointers[r][i];
                // 0 if it could not be opened.
                if (pointer != 0 && i < memories) {
                    CudaMemory.ipcClose(pointer);
                } else if (pointer != 0) {
                    CudaStreams.destroyEvent(pointer);
                }
            }
            any |= opened[r];
            opened[r] = false;
        }
        return any;
    }
}
