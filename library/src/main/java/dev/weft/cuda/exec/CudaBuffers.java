package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/**
 * What an operator keeps on its GPU: gathered A twice, flags, and the word that a stall raises.
 * Nothing is allocated after it is made.
 */
public final class CudaBuffers implements AutoCloseable {

    private final Shards shards;
    private final DType aType;
    private final long cols;
    private final List<DeviceBuffer> owned = new ArrayList<>();
    private final DeviceBuffer[] gathered = new DeviceBuffer[2];
    private final DeviceBuffer flags;
    private final int flagCount;
    private final StallWord stall;

    public CudaBuffers(Shards shards, DType aType, long cols, int flagCount, GpuStream stream) {
        this.shards = shards;
        this.aType = aType;
        this.cols = cols;
        this.flagCount = flagCount;
        try {
            for (int i = 0; i < 2; i++) {
                long bytes = DeviceMatrix.alignedBytes(aType, shards.totalRows(), cols);
                gathered[i] = allocate(bytes, stream);
            }
            this.flags = allocate(4L * Math.max(1, flagCount), stream);
            this.stall = new StallWord();
        } catch (RuntimeException e) {
            owned.forEach(DeviceBuffer::close);
            throw e;
        }
    }

    private DeviceBuffer allocate(long bytes, GpuStream stream) {
        owned.add(DeviceOperands.zeroed(bytes, stream));
        return owned.getLast();
    }

    /** All that it holds on the GPU. */
    public long bytes() {
        return owned.stream().mapToLong(DeviceBuffer::bytes).sum();
    }

    public DType aType() {
        return aType;
    }

    public int flagCount() {
        return flagCount;
    }

    public long flags() {
        return flags.address();
    }

    public StallWord stall() {
        return stall;
    }

    public long gatheredAddress(int parity) {
        return gathered[parity].address();
    }

    public DeviceMatrix gathered(int parity) {
        return DeviceMatrix.in(gathered[parity], aType, shards.totalRows(), cols);
    }

    public DeviceMatrix shard(int rank, int parity) {
        return gathered(parity).rows(shards.firstRow(rank), shards.rows(rank));
    }

    @Override
    public void close() {
        owned.forEach(DeviceBuffer::close);
        stall.close();
    }
}
