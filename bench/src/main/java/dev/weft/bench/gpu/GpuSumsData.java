package dev.weft.bench.gpu;

import dev.weft.bench.measure.Resources;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.stream.LongStream;

/**
 * The inputs of one product that is summed over ranks: all of A and B on the device, random and
 * never zero. The last rank runs. The others have few columns of A each: what they send has as many
 * bytes as with many. Used by one thread.
 */
final class GpuSumsData implements AutoCloseable {

    /** Columns of A of every rank but the last. */
    private static final long OTHERS_K = 64;

    private static final long B_SEED = 1_000_003;

    private final GpuBench bench;
    private final Resources opened = new Resources();
    private final Shards rows;
    private final Shards inner;
    private final DeviceMatrix a;
    private final DeviceMatrix b;

    GpuSumsData(GpuBench bench, DType type, int ranks, long m, long k, long n) {
        this.bench = bench;
        this.rows = Shards.even(m, ranks);
        this.inner =
                Shards.of(
                        LongStream.range(0, ranks)
                                .map(r -> r < ranks - 1 ? OTHERS_K : k)
                                .toArray());
        this.a = matrix(type, m, inner.totalRows());
        this.b = matrix(type, inner.totalRows(), n);
        bench.check().fillNormal(b, B_SEED, 1f);
    }

    private DeviceMatrix matrix(DType type, long rowCount, long cols) {
        DeviceBuffer buffer =
                opened.add(DeviceBuffer.allocate(DeviceMatrix.alignedBytes(type, rowCount, cols)));
        return DeviceMatrix.in(buffer, type, rowCount, cols);
    }

    /** Other values of A; operators keep what they have. */
    void refill(long seed) {
        bench.check().fillNormal(a, seed, 1f);
    }

    DeviceMatrix a() {
        return a;
    }

    DeviceMatrix b() {
        return b;
    }

    private int last() {
        return inner.ranks() - 1;
    }

    private static DeviceMatrix columns(DeviceMatrix of, long first, long count) {
        return new DeviceMatrix(of.at(0, first), of.dtype(), of.rows(), count, of.rowPitch());
    }

    /** A of the rank that runs. */
    DeviceMatrix input() {
        return columns(a, inner.firstRow(last()), inner.rows(last()));
    }

    /** The last rank's operator, prepared, with what its peers send and its A in place. */
    CudaMatmulReduce operator(Reduction reduction, DType out) {
        CudaMatmulReduce operator =
                CudaMatmulReduce.withHostPeers(bench.gpu(), last(), false)
                        .a(rows, inner, a.dtype())
                        .b(b.rows(inner.firstRow(last()), inner.rows(last())), false)
                        .output(out)
                        .algorithm(reduction)
                        .deadline(GpuBench.DEADLINE)
                        .prepare();
        place(operator);
        return operator;
    }

    /** From now on every call finds these values. */
    void place(CudaMatmulReduce operator) {
        operator.incoming(0, Reduction.PARTIAL)
                .ifPresent(to -> product(0, inner.firstRow(last()), to));
        for (int r = 0; r < last(); r++) {
            long first = inner.firstRow(r);
            operator.incoming(0, Reduction.slotOf(r))
                    .ifPresent(to -> product(first, first + OTHERS_K, to));
        }
        for (int half = 0; half < 2; half++) {
            operator.call(input());
        }
    }

    /** The product of one rank over some columns of A, of as many rows as there is room for. */
    private void product(long from, long to, Matrix into) {
        try (CudaAllGatherMatmul alone = alone(from, to, into.dtype())) {
            alone.call(columns(a, from, to - from))
                    .product()
                    .rows(0, into.rows())
                    .download(into, bench.stream());
        }
    }

    private CudaAllGatherMatmul alone(long from, long to, DType out) {
        return CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                .a(Shards.of(a.rows()), a.dtype())
                .b(b.rows(from, to - from), false)
                .output(out)
                .deadline(GpuBench.DEADLINE)
                .prepare();
    }

    /** What one rank makes of all of A and B, or of the last rank's alone. */
    CudaAllGatherMatmul reference(boolean whole, DType out) {
        long from = whole ? 0 : inner.firstRow(last());
        CudaAllGatherMatmul alone = alone(from, inner.totalRows(), out);
        alone.call(columns(a, from, inner.totalRows() - from));
        return alone;
    }

    /** The rows of C that the rank that runs gets. */
    DeviceMatrix ownRows(DeviceMatrix c) {
        return c.rows(rows.firstRow(last()), rows.rows(last()));
    }

    /** Those that it sends. */
    DeviceMatrix sentRows(DeviceMatrix c) {
        return c.rows(0, rows.firstRow(last()));
    }

    @Override
    public void close() {
        opened.close();
    }
}
