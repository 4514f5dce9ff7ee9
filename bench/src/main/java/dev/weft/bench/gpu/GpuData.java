package dev.weft.bench.gpu;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/**
 * The inputs of one problem on the device, random and never zero: all rows of A, by which gathered
 * rows and products are judged, and B. Used by one thread.
 */
record GpuData(GpuBench bench, Shards shards, DeviceBuffer buffer, DeviceMatrix a, DeviceMatrix b)
        implements AutoCloseable {

    private static final long B_SEED = 1_000_003;

    /**
     * @param k a multiple of 8, like {@code n}, so that rows are aligned
     */
    static GpuData of(GpuBench bench, DType type, Shards shards, long k, long n) {
        long aBytes = Matrix.contiguousBytes(type, shards.totalRows(), k);
        DeviceBuffer buffer = DeviceBuffer.allocate(aBytes + Matrix.contiguousBytes(type, k, n));
        DeviceMatrix a = new DeviceMatrix(buffer.address(), type, shards.totalRows(), k, k);
        DeviceMatrix b = new DeviceMatrix(buffer.address() + aBytes, type, k, n, n);
        bench.check().fillNormal(b, B_SEED, 1f);
        return new GpuData(bench, shards, buffer, a, b);
    }

    DeviceMatrix shard(int rank) {
        return a.rows(shards.firstRow(rank), shards.rows(rank));
    }

    /** Rank 0's operator, its peers in host memory. */
    CudaAllGatherMatmulBuilder operator() {
        return CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                .a(shards, a.dtype())
                .b(b, false)
                .output(a.dtype())
                .deadline(GpuBench.DEADLINE);
    }

    /** Other rows of A; operators keep the ones that they have. */
    void refill(long seed) {
        bench.check().fillNormal(a, seed, 1f);
    }

    /** Writes the rows of rank 0's peers to where they are in host memory. */
    void placePeers(CudaAllGatherMatmul operator) {
        for (int rank = 1; rank < shards.ranks(); rank++) {
            shard(rank).download(operator.peerShard(rank), bench.stream());
        }
    }

    /** The numbered rows of a device matrix, one after the other. */
    Matrix download(DeviceMatrix from, long[] rows, Arena arena) {
        Matrix host = Matrix.allocate(arena, from.dtype(), rows.length, from.cols());
        for (int i = 0; i < rows.length; i++) {
            from.rows(rows[i], 1).download(host.rows(i, 1), bench.stream());
        }
        return host;
    }

    Matrix downloadB(Arena arena) {
        Matrix host = Matrix.allocate(arena, b.dtype(), b.rows(), b.cols());
        b.download(host, bench.stream());
        return host;
    }

    @Override
    public void close() {
        buffer.close();
    }
}
