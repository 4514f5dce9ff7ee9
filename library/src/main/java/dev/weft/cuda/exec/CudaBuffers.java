package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.StallWord;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/**
 * What an operator keeps on its GPU: two buffers of rows, flags, and the word that a stall raises.
 * Nothing is allocated after it is made.
 */
public final class CudaBuffers implements AutoCloseable {

    private DeviceLayout layout;
    private final int rank;
    private final List<DeviceBuffer> owned = new ArrayList<>();
    private final DeviceBuffer[] rows = new DeviceBuffer[2];
    private final DeviceBuffer flags;
    private final int flagCount;
    private final StallWord stall;

    /**
     * @param leastRows that a buffer has room for, whatever it holds
     */
    public CudaBuffers(
            DeviceLayout layout, int rank, int flagCount, long leastRows, GpuStream stream) {
        this.layout = layout;
        this.rank = rank;
        this.flagCount = flagCount;
        long bytes = leastRows * layout.pitchBytes();
        try {
            for (int i = 0; i < 2; i++) {
                rows[i] = allocate(Math.max(bytes, layout.bytes(rank)), stream);
            }
            this.flags = allocate(4L * Math.max(1, flagCount), stream);
            this.stall = new StallWord();
        } catch (RuntimeException e) {
            owned.forEach(DeviceBuffer::close);
            throw e;
        }
    }

    private DeviceBuffer allocate(long bytes, GpuStream stream) {
        owned.add(DeviceBuffer.zeroed(bytes, stream));
        return owned.getLast();
    }

    /** The rows of the next calls. */
    public void setRows(Shards shards) {
        layout = layout.with(shards);
    }

    public DType aType() {
        return layout.dtype();
    }

    public int flagCount() {
        return flagCount;
    }

    public long flags() {
        return flags.address();
    }

    /** What a product waits at for rows in these buffers. */
    public GatedProduct.Gates gates(long deadlineNs) {
        return gates(0, deadlineNs);
    }

    /**
     * @param firstFlag of its plan
     */
    public GatedProduct.Gates gates(int firstFlag, long deadlineNs) {
        return new GatedProduct.Gates(flags() + 4L * firstFlag, stall, deadlineNs);
    }

    /** Whether an address lies in a buffer of rows of this parity. */
    public boolean contains(long address, int parity) {
        long from = address(parity);
        return address >= from && address < from + rows[parity].bytes();
    }

    public StallWord stall() {
        return stall;
    }

    /** Bytes that peers can reach: rows and flags. */
    public long reachableBytes() {
        return owned.stream().mapToLong(DeviceBuffer::bytes).sum();
    }

    /** Where the buffer for calls of this parity starts. */
    public long address(int parity) {
        return rows[parity].address();
    }

    /** All shards, if the buffer holds them all. */
    public DeviceMatrix gathered(int parity) {
        return layout.gathered(address(parity));
    }

    /** The first rows of gathered A, and after its end what there is room for. */
    public DeviceMatrix room(int parity, long count) {
        DeviceMatrix all = gathered(parity);
        return new DeviceMatrix(all.address(), all.dtype(), count, all.cols(), all.rowPitch());
    }

    /** All shards of a call in a buffer like those, of this rank or another one. */
    public DeviceMatrix gatheredAt(long address, Shards shards) {
        return layout.with(shards).gathered(address);
    }

    /** This rank's own rows of a call. */
    public DeviceMatrix shard(int parity, Shards shards) {
        return layout.with(shards).shard(rank, rank, address(parity));
    }

    /** The rows of {@code source}, which arrive in {@code slot}. */
    public DeviceMatrix arrived(int source, int slot, int parity) {
        return layout.shard(rank, source, address(layout.buffer(rank, source, slot, parity)));
    }

    @Override
    public void close() {
        owned.forEach(DeviceBuffer::close);
        stall.close();
    }
}
