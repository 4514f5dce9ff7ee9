package dev.weft.cuda;

import dev.weft.ffi.CudaGraphs;
import dev.weft.ffi.CudaStreams;

/** A queue of work on one GPU: Weft's own, or a caller's. */
public final class GpuStream implements AutoCloseable {

    private final long handle;
    private final boolean own;
    private boolean closed;

    private GpuStream(long handle, boolean own) {
        this.handle = handle;
        this.own = own;
    }

    /** A new stream on the GPU that is bound. */
    public static GpuStream create() {
        return new GpuStream(CudaStreams.create(0), true);
    }

    /** A new stream of high priority. */
    public static GpuStream urgent() {
        return new GpuStream(CudaStreams.create(CudaStreams.priorityRange()[1]), true);
    }

    /** A caller's stream (a {@code CUstream}), which closing this leaves alone. */
    public static GpuStream of(long handle) {
        return new GpuStream(handle, false);
    }

    public long handle() {
        return handle;
    }

    /** Blocks until all work queued so far is done. */
    public void synchronize() {
        CudaStreams.synchronize(handle);
    }

    @Override
    public void close() {
        if (own && !closed) {
            closed = true;
            CudaStreams.destroy(handle);
        }
    }

    /**
     * Records what {@code work} queues here, and on streams that it joins; nothing of it runs
     * before a launch. If it throws, there is no graph.
     */
    public Graph capture(Runnable work) {
        CudaGraphs.beginCapture(handle, CudaGraphs.Mode.RELAXED);
        try {
            work.run();
        } catch (RuntimeException | Error e) {
            try {
                CudaGraphs.destroy(CudaGraphs.endCapture(handle));
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
        return new Graph(CudaGraphs.endCapture(handle));
    }

    /**
     * Calls and other work that were queued on a stream once, and are launched as often as you
     * like: a CUDA graph. A launch costs the host much less than queueing the work again.
     *
     * <pre>{@code
     * try (var graph = stream.capture(() -> op.start(shard, stream, View.PIPELINED))) {
     *     graph.launch(stream); // a new call, with what is in shard by then
     *     stream.synchronize();
     *     op.checkReplays();
     * }
     * }</pre>
     *
     * <p>Launches and calls of the same operator must come one after the other: on one stream, or
     * with a wait in between. Addresses and numbers of rows are those of the capture, also that of
     * a residual. An operator's {@code product} is the place of its results in launches, too;
     * {@code lastResult} tells of calls outside of graphs alone. Close the graph, when no launch is
     * under way, before its operators.
     */
    public static final class Graph implements AutoCloseable {

        private final long graph;
        private boolean gone;

        private Graph(long graph) {
            this.graph = graph;
        }

        /** Queues all of it behind what is on {@code stream}. */
        public void launch(GpuStream stream) {
            if (gone) {
                throw new IllegalStateException("the graph is closed");
            }
            CudaGraphs.launch(graph, stream.handle());
        }

        @Override
        public void close() {
            if (!gone) {
                gone = true;
                CudaGraphs.destroy(graph);
            }
        }
    }
}
