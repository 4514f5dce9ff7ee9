package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.process.Uninterruptibly;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A product of gathered A, tile by tile in the order in which shards are pulled. A tile is some
 * rows of one shard and some columns of B; it waits for every chunk that it reads. Several threads
 * share the tiles: each takes the next free one.
 */
final class HelionMatmul {

    private final HelionProduct<Matrix, HelionProgress> wanted;
    private final Matrix a;
    private final long shardRows;
    private final List<PackedB> b = new ArrayList<>();
    private final Matrix whole;
    private final List<Matrix> c = new ArrayList<>();
    private final Fabric group;
    private final Gemm engine;
    private final long blockRows;
    private final long blockCols;
    private final AtomicInteger next = new AtomicInteger();
    private final List<List<Span>> spans = new ArrayList<>();
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();

    /**
     * Packs B, and allocates the product unless it is given.
     *
     * @param arena stays open until the product has run
     */
    HelionMatmul(HelionProduct<Matrix, HelionProgress> wanted, long shardRows, Arena arena) {
        this.wanted = wanted;
        this.a = wanted.a();
        this.shardRows = shardRows;
        this.group = wanted.progress().group();
        Matrix b = wanted.b();
        boolean bTransposed = wanted.bTransposed();
        long n = bTransposed ? b.rows() : b.cols();
        DType type = DType.promote(a.dtype(), b.dtype());
        Matrix c =
                wanted.c() == null
                        ? Matrix.allocate(Arena.ofAuto(), type, a.rows(), n)
                        : wanted.c();
        this.whole = c;
        this.engine = Gemms.auto(a.dtype(), b.dtype());
        Helion.Config config = wanted.config();
        this.blockRows = config == null ? engine.blockRows() : config.blockM();
        this.blockCols = config == null ? n : Math.min(n, config.blockN());
        for (long col = 0; col < c.cols(); col += blockCols) {
            long cols = Math.min(blockCols, c.cols() - col);
            Matrix columns = bTransposed ? b.rows(col, cols) : b.block(0, b.rows(), col, cols);
            this.b.add(engine.pack(columns, bTransposed, arena));
            this.c.add(c.block(0, c.rows(), col, cols));
        }
    }

    /**
     * The caller's thread multiplies too, and rethrows what any thread threw.
     *
     * @param originNs spans are relative to it, by {@link System#nanoTime()}
     */
    void run(long originNs) {
        int workers = Math.max(1, Runtime.getRuntime().availableProcessors() / group.worldSize());
        List<Thread> others = new ArrayList<>();
        for (int i = 0; i < workers; i++) {
            spans.add(new ArrayList<>());
        }
        for (int i = 1; i < workers; i++) {
            String name = "weft-" + group.worldRank(group.rank()) + "-matmul-" + i;
            List<Span> own = spans.get(i);
            others.add(Thread.ofPlatform().daemon().name(name).start(() -> work(own, originNs)));
        }
        work(spans.getFirst(), originNs);
        // The result's memory must not be freed while it is written.
        Uninterruptibly.join(others);
        if (failure.get() != null) {
            throw failure.get();
        }
    }

    /** What each thread did, once it has run. */
    List<List<Span>> spans() {
        return spans;
    }

    /** The whole product. */
    Matrix c() {
        return whole;
    }

    private void work(List<Span> own, long originNs) {
        try (Arena arena = Arena.ofShared()) {
            Scratch scratch = engine.scratch(a.cols(), blockCols, arena);
            int across = b.size();
            int perShard =
                    Math.multiplyExact(Math.toIntExact(Math.ceilDiv(shardRows, blockRows)), across);
            int tiles = Math.multiplyExact(perShard, group.size());
            for (int i = next.getAndIncrement(); i < tiles; i = next.getAndIncrement()) {
                int source = HelionHostGather.source(wanted.rank(), i / perShard, group.size());
                int within = i % perShard;
                long firstRow = within / across * blockRows;
                tile(source, firstRow, within % across, scratch, own, originNs);
                group.worked();
            }
        } catch (RuntimeException e) {
            failed(e);
        } catch (Throwable e) {
            failed(new IllegalStateException(e));
        }
    }

    private void failed(RuntimeException cause) {
        failure.compareAndSet(null, cause);
        // The other workers take no more tiles; every waiting thread, here or on a peer, learns
        // why.
        next.set(Integer.MAX_VALUE / 2);
        group.fail(cause);
    }

    /**
     * @param firstRow the first row in the shard of {@code source}
     * @param column which block of columns
     */
    private void tile(
            int source, long firstRow, int column, Scratch scratch, List<Span> own, long originNs) {
        long rows = Math.min(blockRows, shardRows - firstRow);
        int splits = wanted.splitsPerRank();
        // A chunk is a share of the shard's elements: it may end inside a row.
        long chunkElements = shardRows * a.cols() / splits;
        long first = firstRow * a.cols() / chunkElements;
        long last = ((firstRow + rows) * a.cols() - 1) / chunkElements;
        long startNs = System.nanoTime() - originNs;
        boolean waited = false;
        for (long split = first; split <= last; split++) {
            waited |= wanted.progress().await(source, (int) split, splits);
        }
        long readyNs = System.nanoTime() - originNs;
        if (waited) {
            own.add(Span.local(Kind.WAIT, source, source, firstRow, rows, startNs, readyNs));
        }
        long row = source * shardRows + firstRow;
        engine.multiply(a, row, rows, b.get(column), c.get(column), row, scratch);
        long endNs = System.nanoTime() - originNs;
        own.add(Span.local(Kind.COMPUTE, source, wanted.rank(), firstRow, rows, readyNs, endNs));
    }
}
