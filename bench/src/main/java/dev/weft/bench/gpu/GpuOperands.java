package dev.weft.bench.gpu;

import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.gemm.Deviation;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Optional;

/**
 * The inputs of one gather and product on the device: all rows of A, by which gathered rows and
 * products are judged, and B. Used by one thread.
 */
abstract class GpuOperands implements AutoCloseable {

    final GpuBench bench;
    final Shards shards;
    final long k;
    final long n;
    final Resources opened = new Resources();

    GpuOperands(GpuBench bench, Shards shards, long k, long n) {
        this.bench = bench;
        this.shards = shards;
        this.k = k;
        this.n = n;
    }

    /** All rows of A, as they are gathered. */
    abstract DeviceMatrix a();

    /** Other rows of A; operators keep the ones that they have. */
    abstract void refill(long seed);

    /** Rank 0's operator, its peers in host memory. */
    abstract CudaAllGatherMatmulBuilder operator();

    /** The product of all rows by cublasLt. */
    abstract GpuCublas cublas(DType out) throws IOException, InterruptedException;

    /** Judges every element of a product on the device, if it has a kernel for these types. */
    abstract Optional<DeviceCheck.Verdict> check(DeviceMatrix c);

    /** Judges some rows of a product in float64 on the CPU. */
    abstract Deviation float64(DeviceMatrix c, long[] rows, Arena arena);

    DeviceMatrix shard(int rank) {
        return a().rows(shards.firstRow(rank), shards.rows(rank));
    }

    /** Writes the rows of rank 0's peers to where they are in host memory. */
    void placePeers(CudaAllGatherMatmul operator) {
        for (int rank = 1; rank < shards.ranks(); rank++) {
            shard(rank).download(operator.peerShard(rank), bench.stream());
        }
    }

    final DeviceMatrix matrix(DType type, long rows, long cols) {
        return matrix(opened, type, rows, cols);
    }

    static DeviceMatrix matrix(Resources opened, DType type, long rows, long cols) {
        long bytes = DeviceMatrix.alignedBytes(type, rows, cols);
        return DeviceMatrix.in(opened.add(DeviceBuffer.allocate(bytes)), type, rows, cols);
    }

    /** The numbered rows of a device matrix, one after the other. */
    final Matrix download(DeviceMatrix from, long[] rows, Arena arena) {
        Matrix host = Matrix.allocate(arena, from.dtype(), rows.length, from.cols());
        for (int i = 0; i < rows.length; i++) {
            from.rows(rows[i], 1).download(host.rows(i, 1), bench.stream());
        }
        return host;
    }

    @Override
    public void close() {
        opened.close();
    }
}
