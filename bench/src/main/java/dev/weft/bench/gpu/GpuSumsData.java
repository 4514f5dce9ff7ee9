package dev.weft.bench.gpu;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.op.Epilogue;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.stream.LongStream;

/**
 * The inputs of one product that is summed over ranks: all of A and B on the device, random and
 * never zero. Used by one thread.
 */
final class GpuSumsData extends GpuData {

    /** Columns of A of every rank that does not run. */
    private static final long OTHERS_K = 64;

    private final Shards kParts;

    /**
     * @param kParts who has which columns of A
     */
    GpuSumsData(GpuBench bench, DType type, long m, Shards kParts, long n) {
        super(bench, type, Shards.even(m, kParts.ranks()), kParts.totalRows(), n);
        this.kParts = kParts;
    }

    /**
     * Columns of A where the last rank runs. The others have few: what they send has as many bytes
     * as with many.
     */
    static Shards lastOf(int ranks, long k) {
        return Shards.of(
                LongStream.range(0, ranks).map(r -> r < ranks - 1 ? OTHERS_K : k).toArray());
    }

    Shards kParts() {
        return kParts;
    }

    int last() {
        return kParts.ranks() - 1;
    }

    private DeviceMatrix columns(long from, long to) {
        return new DeviceMatrix(
                a().at(0, from), a().dtype(), a().rows(), to - from, a().rowPitch());
    }

    /** A of one rank. */
    DeviceMatrix input(int rank) {
        return columns(kParts.firstRow(rank), kParts.firstRow(rank) + kParts.rows(rank));
    }

    /** B of one rank. */
    DeviceMatrix b(int rank) {
        return b().rows(kParts.firstRow(rank), kParts.rows(rank));
    }

    /** The last rank's operator, prepared, with what its peers send and its A in place. */
    CudaMatmulReduce operator(Reduction reduction) {
        CudaMatmulReduce operator =
                CudaMatmulReduce.withHostPeers(bench.gpu(), last(), false)
                        .a(shards, kParts, a().dtype())
                        .b(b(last()), false)
                        .output(a().dtype())
                        .algorithm(reduction)
                        .deadline(GpuBench.DEADLINE)
                        .prepare();
        place(operator);
        return operator;
    }

    /** From now on every call finds these values. */
    void place(CudaMatmulReduce operator) {
        operator.incoming(0, Reduction.PARTIAL)
                .ifPresent(to -> product(0, kParts.firstRow(last()), to));
        for (int r = 0; r < last(); r++) {
            long first = kParts.firstRow(r);
            operator.incoming(0, Reduction.slotOf(r))
                    .ifPresent(to -> product(first, first + OTHERS_K, to));
        }
        for (int half = 0; half < 2; half++) {
            operator.call(input(last()));
        }
    }

    /** The product of one rank over some columns of A, of as many rows as there is room for. */
    private void product(long from, long to, Matrix into) {
        try (CudaAllGatherMatmul alone = alone(from, to, into.dtype())) {
            alone.lastResult().product().rows(0, into.rows()).download(into, bench.stream());
        }
    }

    /** What one rank makes of some columns of A and rows of B, called. */
    CudaAllGatherMatmul alone(long from, long to, DType out) {
        return operatorOf(from, to, out, Epilogue.none());
    }

    /** Likewise with an epilogue. */
    CudaAllGatherMatmul operatorOf(long from, long to, DType out, Epilogue epilogue) {
        CudaAllGatherMatmul alone =
                CudaAllGatherMatmul.withHostPeers(bench.gpu(), 0)
                        .a(Shards.of(a().rows()), a().dtype())
                        .b(b().rows(from, to - from), false)
                        .output(out)
                        .epilogue(epilogue)
                        .deadline(GpuBench.DEADLINE)
                        .prepare();
        alone.call(columns(from, to));
        return alone;
    }

    /** What one rank makes of all of A and B. */
    CudaAllGatherMatmul whole(DType out) {
        return alone(0, kParts.totalRows(), out);
    }

    /** The rows of C that a rank gets. */
    DeviceMatrix ownRows(DeviceMatrix c, int rank) {
        return c.rows(shards.firstRow(rank), shards.rows(rank));
    }
}
