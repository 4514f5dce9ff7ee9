package dev.weft.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/** One B, on the host or on the device: one of the two is null. */
record CudaOperand(Matrix host, DeviceMatrix device, boolean transposed) {

    DType dtype() {
        return host != null ? host.dtype() : device.dtype();
    }

    long rows() {
        return host != null ? host.rows() : device.rows();
    }

    long cols() {
        return host != null ? host.cols() : device.cols();
    }

    String describe() {
        return host != null ? host.describe() : device.describe();
    }

    long k() {
        return transposed ? cols() : rows();
    }

    long n() {
        return transposed ? rows() : cols();
    }
}
