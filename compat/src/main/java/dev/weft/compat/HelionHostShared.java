package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/** A symmetric matrix in host memory. */
final class HelionHostShared extends HelionShared<Matrix> {

    private final Region region;

    /** Collective. */
    HelionHostShared(Fabric group, long rows, long cols, DType dtype) {
        HelionChecks.shard(rows, cols);
        super(group, rows, cols, dtype);
        region = Transport.of(group).allocate(Matrix.contiguousBytes(dtype, rows, cols));
    }

    @Override
    public Matrix of(int rank) {
        return Matrix.of(region.part(rank), dtype(), rows(), cols());
    }

    @Override
    public void close() {
        region.close();
    }
}
