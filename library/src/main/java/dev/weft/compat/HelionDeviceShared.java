package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.exec.SymmetricBuffer;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;

/**
 * A symmetric matrix in device memory: every rank of the group has one of the same shape on its
 * GPU, and every rank's GPU can read every other one's. Contiguous, with rows that start at
 * multiples of 16 bytes. The owner writes its own; between the start of a gather and its end nobody
 * may. Any thread may look.
 */
public final class HelionDeviceShared implements AutoCloseable {

    private final Fabric group;
    private final Gpu gpu;
    private final SymmetricBuffer buffer;
    private final DeviceMatrix local;

    private HelionDeviceShared(Fabric group, Gpu gpu, long rows, long cols, DType dtype) {
        this.group = group;
        this.gpu = gpu;
        this.buffer = SymmetricBuffer.create(group, gpu, Math.max(1, rows) * cols * dtype.bytes());
        this.local = new DeviceMatrix(buffer.address(group.rank()), dtype, rows, cols, cols);
    }

    /** Collective; refuses shapes or types that differ between the ranks. */
    static HelionDeviceShared create(Fabric group, Gpu gpu, long rows, long cols, DType dtype) {
        HelionChecks.deviceShard(rows, cols, dtype);
        HelionChecks.agreed(group, "rows", rows);
        HelionChecks.agreed(group, "columns", cols);
        HelionChecks.agreed(group, "dtype (0 fp32, 1 fp16, 2 bf16)", dtype.ordinal());
        return new HelionDeviceShared(group, gpu, rows, cols, dtype);
    }

    /** The ranks that share it. */
    public Fabric group() {
        return group;
    }

    /** The GPU of this rank's own. */
    public Gpu gpu() {
        return gpu;
    }

    /** This rank's own, zero at first. */
    public DeviceMatrix local() {
        return local;
    }

    /** Rows on each rank. */
    public long rows() {
        return local.rows();
    }

    public long cols() {
        return local.cols();
    }

    public DType dtype() {
        return local.dtype();
    }

    SymmetricBuffer buffer() {
        return buffer;
    }

    /** Frees it. Collective; no gather may be under way. */
    @Override
    public void close() {
        buffer.close();
    }
}
