package dev.weft.compat;

import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.process.Uninterruptibly;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A running gather on a separate thread, the copy engine: it pulls shard after shard, own one last,
 * reports every chunk, and ends with a barrier. Until it has ended, the rank must make no other
 * collective call on the group. Any thread may wait.
 */
final class HelionHostGather implements HelionGather {

    private final Fabric group;
    private final Matrix output;
    private final HelionShared<Matrix> inp;
    private final HelionProgress progress;
    private final int splits;
    private final long originNs;
    private final Thread thread;
    private final List<Span> spans = new ArrayList<>();
    private volatile Throwable failure;

    private HelionHostGather(
            Matrix output,
            HelionShared<Matrix> inp,
            HelionProgress progress,
            int splitsPerRank,
            long originNs) {
        this.group = inp.group();
        this.output = output;
        this.inp = inp;
        this.progress = progress;
        this.splits = splitsPerRank;
        this.originNs = originNs;
        this.thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("weft-" + group.worldRank(group.rank()) + "-copy-engine")
                        .unstarted(this::run);
    }

    /**
     * Collective; the arguments are already checked. Returns once every rank has called it.
     *
     * @param originNs spans are relative to it, by {@link System#nanoTime()}
     */
    static HelionHostGather start(
            Matrix output,
            HelionShared<Matrix> inp,
            HelionProgress progress,
            int splitsPerRank,
            long originNs) {
        HelionHostGather gather =
                new HelionHostGather(output, inp, progress, splitsPerRank, originNs);
        progress.splits(splitsPerRank);
        // Makes visible what peers wrote into their shards before they called.
        inp.group().barrier();
        gather.thread.start();
        return gather;
    }

    /** The rank whose shard is pulled in a step: the successor's first, the own one last. */
    static int source(int rank, int step, int ranks) {
        return (rank + step + 1) % ranks;
    }

    private void run() {
        try {
            for (int step = 0; step < group.size(); step++) {
                pull(source(group.rank(), step, group.size()));
            }
            // From here on the owners may write their shards again.
            group.barrier();
        } catch (Throwable e) {
            failure = e;
            group.fail(e);
        }
    }

    private void pull(int source) {
        Matrix shard = inp.of(source);
        long chunkBytes = shard.elementBytes() / splits;
        for (int split = 0; split < splits; split++) {
            long from = split * chunkBytes;
            long to = source * shard.elementBytes() + from;
            long startNs = System.nanoTime() - originNs;
            MemorySegment.copy(shard.data(), from, output.data(), to, chunkBytes);
            progress.publish(source, split);
            spans.add(span(source, split, chunkBytes, startNs, System.nanoTime() - originNs));
            group.worked();
        }
    }

    /** A chunk may begin and end inside a row: the span has all rows that it touches. */
    private Span span(int source, int split, long bytes, long startNs, long endNs) {
        long rowBytes = Math.max(1, inp.cols() * inp.dtype().bytes());
        long first = split * bytes / rowBytes;
        long rows = Math.ceilDiv((split + 1) * bytes, rowBytes) - first;
        int rank = group.rank();
        return source == rank
                ? Span.local(Kind.STAGE, rank, rank, first, rows, startNs, endNs)
                : new Span(
                        Kind.TRANSFER,
                        source,
                        source,
                        rank,
                        split,
                        first,
                        rows,
                        bytes,
                        startNs,
                        endNs);
    }

    /** What was copied; complete once it was awaited. */
    List<Span> spans() {
        return spans;
    }

    @Override
    public Optional<GpuStream> stream() {
        return Optional.empty();
    }

    /** Needs no deadline: the waits of the gather itself have the group's. */
    @Override
    public void await() {
        // Peers depend on the gather, so an interrupt must not end it.
        Uninterruptibly.join(thread);
        switch (failure) {
            case null -> {}
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            case Throwable e -> throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        Uninterruptibly.join(thread);
    }
}
