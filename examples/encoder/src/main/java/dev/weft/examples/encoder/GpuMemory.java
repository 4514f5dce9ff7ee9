package dev.weft.examples.encoder;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;

/** All that a rank has opened on its GPU. One thread at a time. */
final class GpuMemory implements AutoCloseable {

    private final List<AutoCloseable> opened = new ArrayList<>();
    private final GpuStream stream;

    /** The GPU is bound. */
    GpuMemory() {
        stream = open(GpuStream.create());
    }

    /** On which everything is queued. */
    GpuStream stream() {
        return stream;
    }

    <T extends AutoCloseable> T open(T resource) {
        opened.add(resource);
        return resource;
    }

    DeviceMatrix zeroed(DType type, long rows, long cols) {
        long bytes = DeviceMatrix.alignedBytes(type, rows, cols);
        return DeviceMatrix.in(open(DeviceBuffer.zeroed(bytes, stream)), type, rows, cols);
    }

    DeviceMatrix uploaded(Matrix matrix) {
        DeviceMatrix device = zeroed(matrix.dtype(), matrix.rows(), matrix.cols());
        device.upload(matrix, stream);
        return device;
    }

    /** The latest first, and all of them, whatever one of them throws. */
    @Override
    public void close() {
        IllegalStateException failure = null;
        for (AutoCloseable one : opened.reversed()) {
            try {
                one.close();
            } catch (Exception e) {
                if (failure == null) {
                    failure = new IllegalStateException(e);
                } else {
                    failure.addSuppressed(e);
                }
            }
        }
        opened.clear();
        if (failure != null) {
            throw failure;
        }
    }
}
