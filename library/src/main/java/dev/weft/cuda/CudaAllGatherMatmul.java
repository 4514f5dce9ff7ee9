package dev.weft.cuda;

import dev.weft.fabric.Fabric;
import dev.weft.ffi.CudaStreams;
import dev.weft.op.View;
import dev.weft.plan.RankPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.List;
import java.util.Optional;

/**
 * C = allgather(A) x B on a GPU, prepared once and called many times: copy streams bring the peers'
 * rows while one kernel multiplies what is there. Every rank prepares it, calls it and closes it,
 * in the same order.
 *
 * <p>With the gated engine the product is bitwise the same whatever the algorithm, the chunks and
 * the order of arrival; cuBLAS promises the float64 bound. A call queues its work on the caller's
 * stream and returns; {@link #await} ends it. A call that cannot complete ends with a {@link
 * dev.weft.fabric.FabricException} within the deadline, after which the operator can only be
 * closed.
 *
 * <p>Two calls may be under way at once: gathered A has two buffers, used in turn, and where the
 * peers' rows lie in host memory a call's copies run while the product before it does. The product
 * itself has one: who uses it queues that behind the call, before the next one.
 *
 * <p>One thread at a time uses an operator.
 */
public final class CudaAllGatherMatmul implements AutoCloseable {

    private final Gpu gpu;
    private final RankPlan plan;
    private final DType aType;
    private final CudaBuffers buffers;
    private final Peers peers;
    private final Copies copies;
    private final List<DeviceProduct> products;
    private final List<DeviceProduct> ready;
    private final CudaEngine engine;
    private final CallEvents events;
    private final GpuStream ownStream = GpuStream.create();
    private final View[] views = new View[2];
    private int started;
    private int awaited;
    private int gatheredCall;
    private double elapsedUs;
    private double gatherUs;
    private boolean closed;
    private RuntimeException failure;

    /**
     * Takes over all that it is given, and closes it.
     *
     * @param ready the products of rows that have all arrived, which may be the same
     */
    CudaAllGatherMatmul(
            Gpu gpu,
            RankPlan plan,
            CudaEngine engine,
            CudaBuffers buffers,
            Peers peers,
            Copies copies,
            List<DeviceProduct> products,
            List<DeviceProduct> ready,
            CallEvents events) {
        this.gpu = gpu;
        this.plan = plan;
        this.engine = engine;
        this.aType = buffers.aType();
        this.buffers = buffers;
        this.peers = peers;
        this.copies = copies;
        this.products = List.copyOf(products);
        this.ready = List.copyOf(ready);
        this.events = events;
    }

    /**
     * Ranks on GPUs, one or several to a GPU. Those of one host reach each other's device memory;
     * where the ranks lie on several, all rows travel through pinned memory of the hosts.
     */
    public static CudaAllGatherMatmulBuilder on(Fabric fabric, Gpu gpu) {
        return new CudaAllGatherMatmulBuilder(fabric, gpu, 0);
    }

    /** This rank alone on the GPU; the shards of its peers lie in pinned host memory. */
    public static CudaAllGatherMatmulBuilder withHostPeers(Gpu gpu, int rank) {
        return new CudaAllGatherMatmulBuilder(null, gpu, rank);
    }

    public RankPlan plan() {
        return plan;
    }

    public CudaEngine engine() {
        return engine;
    }

    /** Thread blocks of the product's grid; 0 where a library chooses. */
    public int computeBlocks() {
        return buffers.computeBlocks();
    }

    /** Copies that a call of this rank issues. */
    public int copiesPerCall() {
        return copies.count();
    }

    /**
     * The place of the next call's shard, [rows of this rank, K]; given to {@link #start} it is not
     * copied. What an earlier call left there holds until it is written.
     */
    public DeviceMatrix nextShard() {
        checkUsable();
        gpu.bind();
        try {
            peers.awaitUnread(started - 1);
        } catch (RuntimeException e) {
            throw failed(e);
        }
        return buffers.shard(plan.rank(), (started + 1) & 1);
    }

    /** With host peers: the rows of a peer, to be written while no call is under way. */
    public Matrix peerShard(int rank) {
        if (!(peers instanceof HostPeers host)) {
            throw new IllegalStateException("the peers are ranks of their own, not host memory");
        }
        return host.shards()
                .rows(plan.chunks().shards().firstRow(rank), plan.chunks().shards().rows(rank));
    }

    /** The product with B number {@code index}, [M, N]; holds until the next call's product. */
    public DeviceMatrix product(int index) {
        return buffers.product(index);
    }

    /**
     * Gathered A of the whole call or gather that was started last, [M, K], unless rows are read in
     * place.
     */
    public Optional<DeviceMatrix> gathered() {
        return plan.storage() == RankPlan.Storage.IN_PLACE && plan.ranks() > 1
                ? Optional.empty()
                : Optional.of(buffers.gathered(gatheredCall & 1));
    }

    /** Gathers, multiplies and waits for the end, on a stream of the operator's own. Collective. */
    public void call(DeviceMatrix shard) {
        start(shard, ownStream, View.PIPELINED);
        await();
    }

    /**
     * Queues a call behind what is on {@code stream}, which goes on when the call has ended.
     * Collective: it returns once every rank has started the call; where the ranks lie on several
     * hosts, once the peers' rows have arrived in this one's memory and its own have left it.
     *
     * @param shard this rank's rows; {@link #nextShard} is read in place, all else is copied
     */
    public void start(DeviceMatrix shard, GpuStream stream, View view) {
        checkUsable();
        checkShard(shard);
        boolean measures = view != View.PIPELINED || views[started & 1] != View.PIPELINED;
        if (awaited < started && measures) {
            throw new IllegalStateException(
                    "a call is under way, and one of the two only measures: await it first");
        }
        gpu.bind();
        try {
            queue(shard, stream, view);
            events.end(started, stream);
        } catch (RuntimeException e) {
            markEnd(stream, e);
            throw failed(e);
        }
    }

    /** What is queued of a call that failed half-way still has an end, for which closing waits. */
    private void markEnd(GpuStream stream, RuntimeException cause) {
        try {
            events.end(started, stream);
        } catch (RuntimeException e) {
            cause.addSuppressed(e);
        }
    }

    private void queue(DeviceMatrix shard, GpuStream stream, View view) {
        int call = started + 1;
        // Behind the call before, whichever stream that is on.
        CudaStreams.waitEvent(stream.handle(), events.endOf(started));
        events.begin(call, stream);
        peers.awaitReuse(call, views[started & 1] == View.COMPUTE_ONLY, stream);
        DeviceMatrix slot = buffers.shard(plan.rank(), call & 1);
        if (shard.address() != slot.address() && shard.rows() > 0) {
            slot.copyFrom(shard, stream);
        }
        started = call;
        views[call & 1] = view;
        peers.announce(call, stream);
        if (plan.storage() == RankPlan.Storage.IN_PLACE) {
            awaitAllAnnounced(call, stream);
        }
        switch (view) {
            case COMPUTE_ONLY -> multiply(ready, gatheredCall, stream);
            case COMM_ONLY -> {
                copies.issue(call, stream, events.endOf(call));
                copies.join(stream);
                gatheredCall = call;
            }
            case PIPELINED -> pipeline(call, stream);
        }
        peers.ended(call, stream);
    }

    private void awaitAllAnnounced(int call, GpuStream stream) {
        for (int r = 0; r < plan.ranks(); r++) {
            if (r != plan.rank()) {
                peers.awaitAnnounced(r, call, stream);
            }
        }
    }

    private void pipeline(int call, GpuStream stream) {
        gatheredCall = call;
        // The end of the call before the last, which used the same buffer.
        long free = events.endOf(call);
        if (plan.storage() == RankPlan.Storage.IN_PLACE) {
            multiply(products, call, stream);
        } else if (buffers.gatherFirst()) {
            copies.issue(call, stream, free);
            copies.join(stream);
            events.gathered(call, stream);
            multiply(products, call, stream);
        } else if (engine == CudaEngine.CUBLAS) {
            copies.beginForArrivals(call, stream, free);
            multiply(products, call, stream);
            copies.issueRest(call);
            copies.join(stream);
        } else {
            // The first copies are on their way before the launch, the others while it runs.
            copies.begin(call, stream, free);
            peers.awaitSharers(call, stream);
            multiply(products, call, stream);
            copies.issueRest(call);
            copies.join(stream);
        }
    }

    private static void multiply(List<DeviceProduct> all, int epoch, GpuStream stream) {
        for (DeviceProduct product : all) {
            product.launch(epoch & 1, epoch, stream);
        }
    }

    /**
     * Queues the gated product of what the latest gather has brought: its gates stand open. For
     * tools under which a grid cannot wait for a copy that comes after it.
     */
    void multiplyArrived(GpuStream stream) {
        multiply(products, gatheredCall, stream);
    }

    /** Waits for the end of the earliest call that has not been awaited. */
    public void await() {
        if (closed || awaited == started) {
            throw new IllegalStateException("no call is under way");
        }
        gpu.bind();
        try {
            peers.awaitQueued(awaited + 1);
            events.await(awaited + 1, started);
        } catch (RuntimeException e) {
            throw failed(e);
        }
        awaited++;
        elapsedUs = events.elapsedUs(awaited);
        boolean gatheredFirst = buffers.gatherFirst() && views[awaited & 1] == View.PIPELINED;
        gatherUs = gatheredFirst ? events.gatherUs(awaited) : 0;
    }

    /** Time on the device of the call that was awaited last, from its turn in the stream on. */
    public double elapsedUs() {
        return elapsedUs;
    }

    /** How much of it passed until all had arrived, where the gather came first; otherwise 0. */
    public double gatherUs() {
        return gatherUs;
    }

    private void checkShard(DeviceMatrix shard) {
        long rows = plan.chunks().shards().rows(plan.rank());
        if (shard.rows() != rows
                || shard.cols() != plan.chunks().cols()
                || shard.dtype() != aType) {
            throw new IllegalArgumentException(
                    "the shard of rank "
                            + peers.worldRank(plan.rank())
                            + " is "
                            + shard.describe()
                            + ": expected ["
                            + rows
                            + ", "
                            + plan.chunks().cols()
                            + "] "
                            + aType.label());
        }
    }

    private void checkUsable() {
        if (closed || failure != null) {
            throw new IllegalStateException(
                    closed ? "the operator is closed" : "the operator has failed", failure);
        }
        if (started - awaited > 1) {
            throw new IllegalStateException("two calls are under way: await the first of them");
        }
    }

    private RuntimeException failed(RuntimeException cause) {
        if (failure == null) {
            failure = cause;
            peers.fail(cause);
        }
        return cause;
    }

    /**
     * Waits for calls under way and frees everything. Collective where ranks share memory: if a
     * peer does not come, what it may still read is left to the end of the process.
     */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        gpu.bind();
        events.drain(started, failure != null);
        boolean unread = peers.awaitRelease(failure != null);
        products.forEach(DeviceProduct::close);
        ready.stream().filter(p -> !products.contains(p)).forEach(DeviceProduct::close);
        copies.close();
        events.close();
        ownStream.close();
        if (unread) {
            peers.close();
            buffers.close();
        }
    }
}
