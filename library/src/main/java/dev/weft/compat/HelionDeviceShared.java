package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.exec.SymmetricBuffer;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;

/** A symmetric matrix in device memory, with rows that start at multiples of 16 bytes. */
final class HelionDeviceShared extends HelionShared<DeviceMatrix> {

    private final Gpu gpu;
    private final SymmetricBuffer buffer;

    /** Collective. */
    HelionDeviceShared(Fabric group, Gpu gpu, long rows, long cols, DType dtype) {
        HelionChecks.deviceShard(rows, cols, dtype);
        super(group, rows, cols, dtype);
        this.gpu = gpu;
        this.buffer = SymmetricBuffer.create(group, gpu, Math.max(1, rows) * cols * dtype.bytes());
    }

    /** The GPU of this rank's own. */
    Gpu gpu() {
        return gpu;
    }

    SymmetricBuffer buffer() {
        return buffer;
    }

    @Override
    public DeviceMatrix of(int rank) {
        return new DeviceMatrix(buffer.address(rank), dtype(), rows(), cols(), cols());
    }

    @Override
    public void close() {
        buffer.close();
    }
}
