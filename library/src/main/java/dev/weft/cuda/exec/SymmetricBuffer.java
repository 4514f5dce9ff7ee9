package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;

/**
 * Device memory of which every rank of a group has a part on its own GPU, and every rank's GPU can
 * read and write every part. Creating and closing are collective. Any thread may ask for addresses.
 */
public final class SymmetricBuffer implements AutoCloseable {

    private final Fabric fabric;
    private final Gpu gpu;
    private final DeviceBuffer own;
    private final PeerPointers pointers;
    private boolean closed;

    private SymmetricBuffer(Fabric fabric, Gpu gpu, DeviceBuffer own) {
        this.fabric = fabric;
        this.gpu = gpu;
        this.own = own;
        try (Region region = Transport.of(fabric).allocate(PeerPointers.bytes(1))) {
            this.pointers = new PeerPointers(fabric, gpu, region, 0, 1, own.address());
        } catch (RuntimeException | Error e) {
            own.close();
            throw e;
        }
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
            try (GpuStream stream = GpuStream.create()) {
                DeviceBuffer own = DeviceOperands.zeroed(bytes, stream);
                return new SymmetricBuffer(fabric, gpu, own);
            }
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            throw e;
        }
    }

    /** Where the part of the group's rank {@code rank} starts, as this rank's GPU sees it. */
    public long address(int rank) {
        return pointers.get(rank, 0);
    }

    /** Bytes of this rank's part. */
    public long bytes() {
        return own.bytes();
    }

    /** Lets go of all parts and frees the own one. Collective; nobody may be reading any more. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        gpu.bind();
        pointers.closeOpened();
        try {
            // What another process still has open must not be freed.
            if (PeerPointers.betweenProcesses(fabric)) {
                fabric.barrier();
            }
        } finally {
            own.close();
        }
    }
}
