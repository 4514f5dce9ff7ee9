package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * One rank on the GPU, and the shards of all others in pinned host memory: one GPU and a real link.
 * The host memory holds all rows, laid out like gathered A, and is the same for every call.
 */
public final class HostPeers implements Peers {

    private final int rank;
    private final PinnedBuffer host;
    private final Matrix shards;
    private final long[] own;
    private final long flags;

    /**
     * @param own this rank's buffers on the device, by parity
     */
    public HostPeers(int rank, DType dtype, long rows, long cols, long[] own, long flags) {
        this.rank = rank;
        this.own = own.clone();
        this.flags = flags;
        this.host = PinnedBuffer.allocate(DeviceMatrix.alignedBytes(dtype, rows, cols));
        long pitch = DeviceMatrix.alignedPitch(dtype, cols);
        this.shards = new Matrix(host.segment(), dtype, rows, cols, pitch);
    }

    /** All rows in host memory; those of the peers are what a call gathers. */
    public Matrix shards() {
        return shards;
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
    public HostSteps steps() {
        return null;
    }

    /** Nobody else reads or writes. */
    @Override
    public boolean awaitRelease(boolean failed) {
        return true;
    }

    @Override
    public void close() {
        host.close();
    }
}
