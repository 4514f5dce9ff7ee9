package dev.weft.cuda.exec;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaMemory;
import java.lang.foreign.MemorySegment;

/**
 * Device memory of which every rank of a group has a part on its own GPU, and every rank's GPU can
 * read and write every part: threads of this process by address, other processes by CUDA's
 * interprocess handles. Each rank shows its part in a region of the fabric:
 *
 * <pre>
 *  0  process id | GPU | address
 * 64  interprocess handle, 64 bytes
 * </pre>
 *
 * <p>Creating and closing are collective. Any thread may ask for addresses.
 */
public final class SymmetricBuffer implements AutoCloseable {

    private static final int PROCESS_AT = 0;
    private static final int GPU_AT = 8;
    private static final int ADDRESS_AT = 16;
    private static final int HANDLE_AT = 64;
    private static final int REGION_BYTES = HANDLE_AT + CudaMemory.IPC_HANDLE_BYTES;

    private final Fabric fabric;
    private final Gpu gpu;
    private final DeviceBuffer own;
    private final boolean betweenProcesses;
    private final long[] addresses;
    private final boolean[] opened;
    private boolean closed;

    private SymmetricBuffer(Fabric fabric, Gpu gpu, DeviceBuffer own) {
        this.fabric = fabric;
        this.gpu = gpu;
        this.own = own;
        this.betweenProcesses = fabric.size() > 1 && !fabric.kind().equals("threads");
        this.addresses = new long[fabric.size()];
        this.opened = new boolean[fabric.size()];
        this.addresses[fabric.rank()] = own.address();
    }

    /**
     * Collective: parts of {@code bytes} each, zero at first, this rank's on {@code gpu}. If it
     * fails on one rank it fails on all.
     */
    public static SymmetricBuffer create(Fabric fabric, Gpu gpu, long bytes) {
        try {
            if (!fabric.sharesMemory()) {
                throw new IllegalArgumentException(
                        "device memory that all ranks reach, on hosts of "
                                + fabric.hosts()
                                + " ranks: expected one host");
            }
            gpu.bind();
            DeviceBuffer own = DeviceBuffer.allocate(bytes);
            SymmetricBuffer buffer = new SymmetricBuffer(fabric, gpu, own);
            try {
                buffer.exchange();
            } catch (RuntimeException | Error e) {
                buffer.closeOpened();
                own.close();
                throw e;
            }
            return buffer;
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            throw e;
        }
    }

    private void exchange() {
        try (GpuStream stream = GpuStream.create()) {
            CudaMemory.fill8Async(own.address(), (byte) 0, own.bytes(), stream.handle());
            stream.synchronize();
        }
        try (Region region = Transport.of(fabric).allocate(REGION_BYTES)) {
            show(region.part(fabric.rank()));
            fabric.barrier();
            for (int r = 0; r < addresses.length; r++) {
                if (r != fabric.rank()) {
                    look(r, region.part(r));
                }
            }
            // Nobody goes on, and perhaps frees its part, before all have opened it.
            fabric.barrier();
        }
    }

    private void show(MemorySegment at) {
        at.set(JAVA_LONG, PROCESS_AT, ProcessHandle.current().pid());
        at.set(JAVA_LONG, GPU_AT, gpu.ordinal());
        at.set(JAVA_LONG, ADDRESS_AT, own.address());
        if (betweenProcesses) {
            byte[] handle = CudaMemory.ipcHandle(own.address());
            MemorySegment.copy(handle, 0, at, JAVA_BYTE, HANDLE_AT, handle.length);
        }
    }

    private void look(int peer, MemorySegment at) {
        if (at.get(JAVA_LONG, PROCESS_AT) == ProcessHandle.current().pid()) {
            int theirGpu = (int) at.get(JAVA_LONG, GPU_AT);
            if (theirGpu != gpu.ordinal()) {
                gpu.reach(Gpu.open(theirGpu));
            }
            addresses[peer] = at.get(JAVA_LONG, ADDRESS_AT);
        } else {
            byte[] handle = new byte[CudaMemory.IPC_HANDLE_BYTES];
            MemorySegment.copy(at, JAVA_BYTE, HANDLE_AT, handle, 0, handle.length);
            addresses[peer] = CudaMemory.ipcOpen(handle);
            opened[peer] = true;
        }
    }

    /** Where the part of the group's rank {@code rank} starts, as this rank's GPU sees it. */
    public long address(int rank) {
        return addresses[rank];
    }

    /** Bytes of this rank's part. */
    public long bytes() {
        return own.bytes();
    }

    private void closeOpened() {
        for (int r = 0; r < opened.length; r++) {
            if (opened[r]) {
                opened[r] = false;
                CudaMemory.ipcClose(addresses[r]);
            }
        }
    }

    /** Lets go of all parts and frees the own one. Collective; nobody may be reading any more. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        gpu.bind();
        closeOpened();
        try {
            // What another process still has open must not be freed.
            if (betweenProcesses) {
                fabric.barrier();
            }
        } finally {
            own.close();
        }
    }
}
