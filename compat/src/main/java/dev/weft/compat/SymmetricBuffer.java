package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.PeerPointers;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;

/**
 * Device memory of which every rank of a group has a part on its own GPU, and every rank's GPU can
 * read and write every part. Creating and closing are collective. Any thread may ask for addresses.
 *
 * <p>Each rank marks two places in its streams, where its part is written and where it has read the
 * others'. Streams of all ranks can wait for them, once a barrier on the host has said that they
 * are marked: the host itself waits for no stream.
 */
final class SymmetricBuffer implements AutoCloseable {

    /** Places of the ranks' barriers; the first two are also the numbers of events. */
    static final int WRITTEN = 1;

    static final int READ = 2;
    private static final int CLOSED = 3;

    private final Fabric fabric;
    private final Gpu gpu;
    private final DeviceBuffer own;
    private final long[] events = new long[2];
    private final PeerPointers pointers;
    private boolean closed;

    private SymmetricBuffer(Fabric fabric, Gpu gpu, DeviceBuffer own) {
        this.fabric = fabric;
        this.gpu = gpu;
        this.own = own;
        try {
            boolean shown = PeerPointers.betweenProcesses(fabric);
            events[0] = CudaStreams.createEvent(false, shown);
            events[1] = CudaStreams.createEvent(false, shown);
            try (Region region = Transport.of(fabric).allocate(PeerPointers.bytes(3))) {
                this.pointers =
                        new PeerPointers(
                                fabric, gpu, region, 0, 1, own.address(), events[0], events[1]);
            }
        } catch (RuntimeException | Error e) {
            free();
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
                DeviceBuffer own = DeviceBuffer.zeroed(bytes, stream);
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

    /** What writes this rank's part comes before this place in {@code stream}. */
    void written(GpuStream stream) {
        CudaStreams.record(events[0], stream.handle());
    }

    /** What reads the peers' parts comes before this place in {@code stream}. */
    void read(GpuStream stream) {
        CudaStreams.record(events[1], stream.handle());
    }

    /** Lets {@code stream} wait for every rank's latest {@link #written}, which all have passed. */
    void awaitWritten(GpuStream stream) {
        await(WRITTEN, stream);
    }

    /** Lets {@code stream} wait for every rank's latest {@link #read}, which all have passed. */
    void awaitRead(GpuStream stream) {
        await(READ, stream);
    }

    /**
     * A barrier, at which all ranks must be at the same place: one that closes must not let another
     * begin to read what it frees. Collective.
     */
    void barrier(int place) {
        for (long other : fabric.exchange(place)) {
            if (other != place) {
                throw new IllegalStateException(
                        "a rank closes shared memory while another one gathers: expected all to do the same");
            }
        }
    }

    private void await(int event, GpuStream stream) {
        for (int r = 0; r < fabric.size(); r++) {
            CudaStreams.waitEvent(stream.handle(), pointers.get(r, event));
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
        pointers.closeOpened();
        try {
            // A peer may be about to queue a wait for these events, though its copies, which this
            // rank has waited for, are done; and another process may still have the memory open.
            barrier(CLOSED);
        } catch (FabricException | IllegalStateException e) {
            // Ranks of one process have nothing open, and after a failure queue nothing more.
            if (PeerPointers.betweenProcesses(fabric)) {
                throw e;
            }
        } finally {
            free();
        }
    }

    private void free() {
        for (long event : events) {
            if (event != 0) {
                CudaStreams.destroyEvent(event);
            }
        }
        own.close();
    }
}
