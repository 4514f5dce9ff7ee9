package dev.weft.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * One rank on the GPU, and the shards of all others in pinned host memory: one GPU and a real link.
 * The host memory holds all rows, laid out like gathered A, and is the same for every call.
 */
final class HostPeers implements Peers {

    private final int rank;
    private final int size;
    private final DType dtype;
    private final long rows;
    private final long cols;
    private final PinnedBuffer host;
    private final long[] own;
    private final long flags;

    /**
     * @param own this rank's buffers on the device, by parity
     */
    HostPeers(int rank, int size, DType dtype, long rows, long cols, long[] own, long flags) {
        this.rank = rank;
        this.size = size;
        this.dtype = dtype;
        this.rows = rows;
        this.cols = cols;
        this.own = own.clone();
        this.flags = flags;
        this.host = PinnedBuffer.allocate(DeviceMatrix.alignedBytes(dtype, rows, cols));
    }

    /** All rows in host memory; those of the peers are what a call gathers. */
    Matrix shards() {
        return new Matrix(
                host.segment(), dtype, rows, cols, DeviceMatrix.alignedPitch(dtype, cols));
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public int worldRank(int of) {
        return of;
    }

    @Override
    public long buffer(int of, int parity) {
        return of == rank ? own[parity] : host.address();
    }

    @Override
    public long flags(int of) {
        return flags;
    }

    @Override
    public boolean rowsAreThere() {
        return true;
    }

    // The stream's own order is all that is needed: nobody else reads or writes.

    @Override
    public void awaitUnread(int call) {}

    @Override
    public void awaitReuse(int call, boolean both, GpuStream stream) {}

    @Override
    public void announce(int call, GpuStream stream) {}

    @Override
    public void awaitAnnounced(int peer, int call, GpuStream stream) {}

    @Override
    public void awaitSharers(int call, GpuStream stream) {}

    @Override
    public boolean awaitRelease(boolean failed) {
        return true;
    }

    @Override
    public void ended(int call, GpuStream stream) {}

    @Override
    public void pushed(int to, int flag, int lane, int call, GpuStream stream) {}

    @Override
    public boolean isPushed(int flag, int call) {
        return true;
    }

    @Override
    public void awaitPushed(int from, int lane, GpuStream stream) {}

    @Override
    public void awaitQueued(int call) {}

    @Override
    public void fail(Throwable cause) {}

    @Override
    public void worked() {}

    @Override
    public void close() {
        host.close();
    }
}
