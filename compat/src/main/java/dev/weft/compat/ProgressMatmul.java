package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.cuda.kernel.StallWord;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.plan.Shards;
import dev.weft.process.WaitTime;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/**
 * C = A x B by the gated kernel on a caller's matrices, with rows that wait for a caller's
 * progress: word r x splits + split says that this share of the elements of rank r's rows has
 * arrived. Every row waits for all words of the shares that it has a part in.
 *
 * <p>A wait lasts no longer than the group's deadline; past it the kernel ends, C is worthless, and
 * {@link #await} and {@link #check} throw a {@link StallException}, after which it can only be
 * closed. The bits of C depend on A and B alone. One thread at a time.
 */
final class ProgressMatmul implements AutoCloseable {

    private final Fabric group;
    private final Gpu gpu;
    private final int splits;
    private final boolean empty;
    private final StallWord stall;
    private final GatedProduct product;
    private final DeviceEvent end;
    private boolean closed;

    /**
     * Loads the kernel and takes its schedule to the device; best before anything waits there. All
     * matrices and the progress must stay.
     *
     * @param wanted a C of the type that holds A's and B's, or fp32; tiles that the kernel for such
     *     operands has
     */
    ProgressMatmul(Fabric group, Gpu gpu, HelionProduct<DeviceMatrix, DeviceProgress> wanted) {
        int ranks = group.size();
        DeviceMatrix a = wanted.a();
        DeviceMatrix b = wanted.b();
        DeviceMatrix c = wanted.c();
        boolean bTransposed = wanted.bTransposed();
        int splitsPerRank = wanted.splitsPerRank();
        check(a, b, bTransposed, c);
        gpu.bind();
        // Its own shard is copied within the GPU too, and where there are fewer GPUs than ranks all
        // of them may be on this one.
        KernelFamily kind = KernelFamily.of(gpu, a, b, c.dtype());
        GatedKernel kernel =
                GatedKernel.load(
                        gpu,
                        kind,
                        tiling(wanted.config(), kind, gpu),
                        a.dtype(),
                        c.dtype(),
                        bTransposed,
                        Shards.even(a.rows(), ranks),
                        0,
                        Gpu.count() < ranks ? ranks : 1);
        TileSchedule schedule =
                TileSchedule.of(
                        ranges(
                                a.rows() / ranks,
                                a.cols(),
                                ranks,
                                splitsPerRank,
                                wanted.rank(),
                                kernel.shape().rows()),
                        c.cols(),
                        kernel.shape());
        this.group = group;
        this.gpu = gpu;
        this.splits = splitsPerRank;
        this.empty = schedule.tileCount() == 0;
        this.end = new DeviceEvent();
        this.stall = new StallWord();
        try {
            this.product =
                    new GatedProduct(
                            kernel,
                            schedule,
                            new GatedProduct.Operands(List.of(List.of(a)), b, bTransposed, c),
                            new GatedProduct.Gates(
                                    wanted.progress().address(),
                                    stall,
                                    WaitTime.nanoseconds(group.deadline())));
            product.takeAnyWord();
        } catch (RuntimeException | Error e) {
            end.close();
            stall.close();
            throw e;
        }
    }

    private static Tiling tiling(Helion.Config config, KernelFamily kind, Gpu gpu) {
        return config == null
                ? kind.fittingTiling(gpu)
                : kind.tiling(
                        new Tiling(
                                config.blockM(),
                                config.blockN(),
                                config.blockK(),
                                config.warps(),
                                config.stages()));
    }

    static void check(DeviceMatrix a, DeviceMatrix b, boolean bTransposed, DeviceMatrix c) {
        long k = bTransposed ? b.cols() : b.rows();
        long n = bTransposed ? b.rows() : b.cols();
        boolean types = c.dtype() == DType.promote(a.dtype(), b.dtype()) || c.dtype() == DType.FP32;
        if (!types || k != a.cols() || k < 1 || n < 1 || c.rows() != a.rows() || c.cols() != n) {
            throw new IllegalArgumentException(
                    ("A %s, B %s%s, C %s: expected [M, K], [K, N] and [M, N], C of the type"
                                    + " that holds A's and B's or fp32")
                            .formatted(
                                    a.describe(),
                                    b.describe(),
                                    bTransposed ? " transposed" : "",
                                    c.describe()));
        }
        if (a.rows() > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    a.rows() + " rows: expected at most " + Integer.MAX_VALUE + " on a GPU");
        }
        aligned("A", a);
        aligned("B", b);
        aligned("C", c);
    }

    /** To its own elements; where rows are not to 16 bytes, tensor cores do not multiply. */
    private static void aligned(String name, DeviceMatrix matrix) {
        if (matrix.address() % matrix.dtype().bytes() != 0) {
            throw new IllegalArgumentException(
                    "%s %s at %s: expected a multiple of %s bytes"
                            .formatted(
                                    name,
                                    matrix.describe(),
                                    matrix.address(),
                                    matrix.dtype().bytes()));
        }
    }

    /**
     * The rows in the order in which they arrive: shard by shard. The first one is taken as its
     * splits come, but never less than a tile at once; the others, which come while it is
     * multiplied, as a whole, so that columns of B are used for many rows while they are near.
     * Every row waits for its own splits only.
     */
    public static List<RowRange> ranges(
            long shardRows, long k, int ranks, int splits, int rank, int tileRows) {
        List<RowRange> ranges = new ArrayList<>();
        for (int step = 0; step < ranks; step++) {
            int source = HelionHostGather.source(rank, step, ranks);
            long base = source * shardRows;
            List<Piece> pieces = pieces(base, shardRows, k, splits, source * splits);
            long first = 0;
            for (Piece piece : pieces) {
                long here = piece.firstRow() + piece.rows() - base;
                long end =
                        step == 0
                                ? Math.min(shardRows, Math.ceilDiv(here, tileRows) * tileRows)
                                : shardRows;
                if (end > first) {
                    long row = base + first;
                    long rows = end - first;
                    List<Piece> awaited =
                            pieces.stream().filter(p -> p.touches(row, rows)).toList();
                    ranges.add(new RowRange(0, row, row, rows, awaited, false));
                    first = end;
                }
            }
        }
        return ranges;
    }

    /** The rows that each split has a part in; a split may begin and end inside a row. */
    private static List<Piece> pieces(
            long base, long shardRows, long k, int splits, int firstFlag) {
        List<Piece> pieces = new ArrayList<>();
        long elements = shardRows * k / splits;
        for (int split = 0; split < splits; split++) {
            long first = split * elements / k;
            long end = Math.ceilDiv((split + 1) * elements, k);
            pieces.add(new Piece(base + first, end - first, 0, firstFlag + split));
        }
        return pieces;
    }

    /** Queues the product on a stream, after those that are under way. */
    public void launch(GpuStream stream) {
        if (closed || stall.raised().isPresent()) {
            throw new IllegalStateException(
                    closed ? "the product is closed" : "the product has stalled");
        }
        gpu.bind();
        // On whichever stream it was launched before: C and the words are the same.
        end.join(stream);
        if (!empty) {
            product.launch(0, DeviceProgress.ARRIVED, stream);
        }
        end.record(stream);
    }

    /** Blocks until the product that was launched last has ended, and checks it. */
    public void await() {
        gpu.bind();
        end.await(group);
        check();
    }

    /**
     * Once the stream has come past the product: throws if it waited too long for some split.
     *
     * @throws StallException that names the rank and, as chunk, the split
     */
    public void check() {
        stall.raised()
                .ifPresent(
                        raised -> {
                            throw describe(raised);
                        });
    }

    private StallException describe(StallWord.Stall raised) {
        int source = group.worldRank(raised.flag() / splits);
        int split = raised.flag() % splits;
        return new StallException(
                group.worldRank(group.rank()),
                source,
                source,
                split,
                "split " + split + " of rank " + source + " on the GPU",
                group.deadline());
    }

    /** Waits for a product under way and frees what was reserved; the matrices stay. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            gpu.bind();
            end.await(group);
            end.close();
            product.close();
            stall.close();
        }
    }
}
