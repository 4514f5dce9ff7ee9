package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * A symmetric matrix: every rank of the group has one of the same shape, and every rank can read
 * every other one's. Contiguous. The owner writes its own; between the start of a gather and its
 * end nobody may.
 */
public final class HelionShared implements AutoCloseable {

    private final Fabric group;
    private final Region region;
    private final Matrix[] parts;

    private HelionShared(Fabric group, long rows, long cols, DType dtype) {
        this.group = group;
        this.region = Transport.of(group).allocate(Matrix.contiguousBytes(dtype, rows, cols));
        this.parts = new Matrix[group.size()];
        for (int r = 0; r < parts.length; r++) {
            parts[r] = Matrix.of(region.part(r), dtype, rows, cols);
        }
    }

    /** Collective; refuses shapes or types that differ between the ranks. */
    static HelionShared create(Fabric group, long rows, long cols, DType dtype) {
        if (rows < 0 || cols < 1) {
            throw new IllegalArgumentException(
                    ("a symmetric matrix of [%s, %s]: expected zero or more rows and at"
                                    + " least one column")
                            .formatted(rows, cols));
        }
        HelionChecks.agreed(group, "rows", rows);
        HelionChecks.agreed(group, "columns", cols);
        HelionChecks.agreed(group, "dtype (0 fp32, 1 fp16, 2 bf16)", dtype.ordinal());
        return new HelionShared(group, rows, cols, dtype);
    }

    /** The ranks that share it. */
    public Fabric group() {
        return group;
    }

    /** This rank's own, zero at first. */
    public Matrix local() {
        return parts[group.rank()];
    }

    /** The one of the group's rank {@code rank}, read in place. */
    public Matrix of(int rank) {
        return parts[rank];
    }

    /** Rows on each rank. */
    public long rows() {
        return local().rows();
    }

    public long cols() {
        return local().cols();
    }

    public DType dtype() {
        return local().dtype();
    }

    /** Lets go of it; no gather may be under way. */
    @Override
    public void close() {
        region.close();
    }
}
