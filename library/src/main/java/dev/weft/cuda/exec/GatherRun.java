package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.exec.host.CallRows;
import dev.weft.fabric.FailureReport;
import dev.weft.ffi.CudaMemory;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A gather and the products of what it brings. Takes ownership of what it is made of except for
 * buffers, operands and peers.
 *
 * @see Parts
 */
public final class GatherRun implements DeviceRun {

    /** From more rows to fewer: a call takes the last that has its rows. */
    private final List<Prepared> prepared = new ArrayList<>();

    private final CudaBuffers buffers;
    private final DeviceOperands operands;
    private Prepared used;

    /** Null unless the peers are ranks that reach each other's GPUs. */
    private final DevicePeers linked;

    private int gatheredCall;

    /** In the buffer of its parity. */
    private Shards gatheredRows;

    /**
     * What a plan asks for.
     *
     * @param inPlace whether rows are read where they lie
     * @param gathersFirst whether products come after the whole gather
     * @param keepsGathered whether gathered A is there after a call
     * @param sharesResults whether peers read the results
     * @param elementBytes of A
     */
    public record Form(
            boolean inPlace,
            boolean gathersFirst,
            boolean keepsGathered,
            boolean sharesResults,
            int elementBytes) {}

    /**
     * What a call takes, all but the memory of operands and rows, which calls share.
     *
     * @param library whether a library multiplies, group by group of rows
     * @param products of rows that may still be on their way
     * @param ready the products of rows that have all arrived, which may be the same
     * @param launches multiplies shards that share buffers; null if every shard has its own place
     */
    public record Parts(
            CopyList list,
            boolean library,
            Copies copies,
            List<DeviceProduct> products,
            List<DeviceProduct> ready,
            Launches launches,
            DeviceTimeline timeline) {}

    /** What calls of some rows take. */
    public static final class Prepared {

        private final Form form;
        private final Parts parts;

        /** The rows that there is room for. */
        private final Shards most;

        private final CallRows rows;
        private final CallEvents.Expected expected;

        /** Products of rows that are there, apart from the others. */
        private final List<DeviceProduct> alone;

        /** The version of the rows that those are for. */
        private int versionOfAlone;

        /**
         * @param most the rows that there is room for
         * @param firstFlag of its plan
         */
        public Prepared(Form form, Parts parts, Shards most, int firstFlag) {
            this.form = form;
            this.parts = parts;
            this.most = most;
            this.rows = new CallRows(most);
            this.expected =
                    new CallEvents.Expected(parts.list.origins(), parts.list.due(), firstFlag);
            this.alone = parts.ready.stream().filter(one -> !parts.products.contains(one)).toList();
        }

        private void setRows(Shards shards, GpuStream stream) {
            if (!rows.set(shards)) {
                return;
            }
            parts.copies.setRows(shards);
            parts.products.forEach(product -> product.setRows(rows::at, stream));
            if (parts.launches != null) {
                parts.launches.setRows(rows::at, stream);
            }
        }

        /** Only views need these. */
        private void setRowsOfReady(GpuStream stream) {
            if (versionOfAlone != rows.version()) {
                versionOfAlone = rows.version();
                alone.forEach(product -> product.setRows(rows::at, stream));
            }
        }

        private void close() {
            parts.products.forEach(DeviceProduct::close);
            alone.forEach(DeviceProduct::close);
            if (parts.launches != null) {
                parts.launches.close();
            }
            parts.copies.close();
            parts.timeline.close();
        }
    }

    /**
     * @param first for as many rows as calls can have
     */
    public GatherRun(Prepared first, CudaBuffers buffers, DeviceOperands operands, Peers peers) {
        this.buffers = buffers;
        this.operands = operands;
        this.gatheredRows = first.most;
        prepared.add(first);
        used = first;
        this.linked = peers instanceof DevicePeers devices ? devices : null;
    }

    @Override
    public DeviceMatrix input(int parity, Shards shards) {
        return buffers.shard(parity, shards);
    }

    @Override
    public void prepare(Shards shards) {
        operands.begin(shards.totalRows());
    }

    @Override
    public void setRows(Shards shards, GpuStream stream) {
        int last = prepared.size() - 1;
        while (!shards.fitsIn(prepared.get(last).most)) {
            last--;
        }
        used = prepared.get(last);
        used.setRows(shards, stream);
        buffers.setRows(shards);
        operands.setRows(shards.totalRows());
    }

    @Override
    public void expect(int call, CallEvents events) {
        events.expect(call, used.expected);
    }

    /** Adds what calls of fewer rows take. */
    public void add(Prepared fewer) {
        prepared.add(fewer);
    }

    @Override
    public String obstacleToCapture() {
        return used.parts.copies instanceof CopyStreams && linked == null && !used.parts.library
                ? null
                : "%s: expected the gated engine, and peers that are host memory"
                        .formatted(
                                used.parts.library
                                        ? "a product of a library"
                                        : "a call in which other ranks take part");
    }

    @Override
    public void capture(int call, GpuStream stream) {
        ((CopyStreams) used.parts.copies).captureNext();
        if (used.parts.list.lanes().isEmpty()) {
            return;
        }
        CudaMemory.fill32Async(
                buffers.flags(), call - 1, Math.max(1, buffers.flagCount()), stream.handle());
    }

    @Override
    public boolean sharesResults() {
        return used.form.sharesResults;
    }

    @Override
    public boolean isReadAfter(View view) {
        return view == View.COMPUTE_ONLY;
    }

    @Override
    public void run(int call, View view, GpuStream stream, CallEvents events) {
        // A rank that reads rows in place needs all peers' rows at once. Nor may it overwrite a
        // product that peers still read: they announce their rows after that.
        if (linked != null && (used.form.inPlace || used.form.sharesResults)) {
            linked.awaitAllRows(call, stream);
        }
        switch (view) {
            case COMPUTE_ONLY -> {
                used.setRowsOfReady(stream);
                multiply(used.parts.ready, gatheredCall, stream);
            }
            case COMM_ONLY -> {
                if (used.parts.launches != null) {
                    used.parts.launches.begin(call, stream, false);
                }
                gather(call, stream);
                used.parts.copies.awaitPushed(call, stream);
                gathers(call);
            }
            case PIPELINED -> {
                gathers(call);
                pipeline(call, stream, events);
            }
        }
        if (view != View.COMM_ONLY) {
            operands.finish(stream);
        }
    }

    private void gathers(int call) {
        gatheredCall = call;
        gatheredRows = used.rows.shards();
    }

    /** All copies, whose end {@code stream} waits for. */
    private void gather(int call, GpuStream stream) {
        used.parts.copies.issue(call, stream);
        used.parts.copies.join(stream);
    }

    private void pipeline(int call, GpuStream stream, CallEvents events) {
        Copies copies = used.parts.copies;
        List<DeviceProduct> products = used.parts.products;
        if (used.form.inPlace) {
            multiply(products, call, stream);
        } else if (used.parts.launches != null) {
            used.parts.launches.begin(call, stream, true);
            gather(call, stream);
        } else if (used.form.gathersFirst) {
            gather(call, stream);
            copies.awaitPushed(call, stream);
            events.firstEnded(call, stream);
            multiply(products, call, stream);
        } else if (used.parts.library) {
            copies.beginForArrivals(call, stream);
            multiply(products, call, stream);
            copies.issueRest(call);
            copies.join(stream);
        } else {
            // The first copies are on their way before the launch, the others while it runs.
            copies.begin(call, stream);
            if (linked != null && !products.isEmpty()) {
                linked.awaitSharers(call, stream);
            }
            multiply(products, call, stream);
            copies.issueRest(call);
            if (products.isEmpty()) {
                copies.join(stream);
            } else {
                copies.endBehindProduct(stream);
            }
        }
        if (products.isEmpty()) {
            copies.awaitPushed(call, stream);
        }
    }

    private static void multiply(List<DeviceProduct> all, int epoch, GpuStream stream) {
        for (DeviceProduct product : all) {
            product.launch(epoch & 1, epoch, stream);
        }
    }

    /**
     * Every tile by the device's clock, and every copy as far as its flag or a wait for it tells,
     * else at one rate in between; of a ring with two buffers every copy and every shard's product.
     */
    @Override
    public Timeline timeline(int call, View view, CallEvents events, long firstNs, long seenNs) {
        if (!used.rows.isWhole()) {
            return null;
        }
        if (used.parts.launches != null) {
            long elapsedNs = events.elapsedNs(call);
            List<Timeline.Track> tracks =
                    new ArrayList<>(
                            ((CopyStreams) used.parts.copies).tracks(call, events.beginOf(call)));
            tracks.add(used.parts.launches.track(call, events.beginOf(call)));
            return new Timeline(used.parts.list.rank(), seenNs - elapsedNs, elapsedNs, tracks);
        }
        List<DeviceProduct> launched =
                switch (view) {
                    case COMPUTE_ONLY -> used.parts.ready;
                    case COMM_ONLY -> List.of();
                    case PIPELINED -> used.parts.products;
                };
        return used.parts.timeline.of(
                launched,
                events,
                call,
                seenNs,
                (times, zeroNs) ->
                        view == View.COMPUTE_ONLY || used.parts.copies.areTracked()
                                ? List.of()
                                : copies(
                                        used.parts.timeline.arrivals(times, zeroNs),
                                        firstNs > 0 ? firstNs : copiedNs(call, events)));
    }

    /** When this rank's copies had ended, as far as it knows. */
    private long copiedNs(int call, CallEvents events) {
        long ownNs = used.parts.copies.copiedNs(events.beginOf(call));
        return ownNs > 0 ? ownNs : events.elapsedNs(call);
    }

    private List<Timeline.Track> copies(long[] ends, long copiedNs) {
        List<Timeline.Track> tracks = new ArrayList<>();
        for (CopyList.Line line : used.parts.list.arriving()) {
            List<Timeline.Span> untimed = new ArrayList<>();
            for (Copy copy : line.copies()) {
                untimed.add(used.parts.list.span(copy, used.form.elementBytes, 0, 0));
            }
            int[] flags = line.copies().stream().mapToInt(Copy::flag).toArray();
            tracks.add(
                    new Timeline.Track(
                            "copies-" + tracks.size(),
                            DeviceTimeline.inOrder(untimed, flags, ends, 0, copiedNs)));
        }
        return tracks;
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return used.parts.copies.tracks(startNs);
    }

    /** Thread blocks of the product's grid; 0 if a library chooses. */
    @Override
    public int blocks() {
        return used.parts.products.isEmpty() ? 0 : used.parts.products.getLast().blocks();
    }

    @Override
    public int copies() {
        return used.parts.copies.count();
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        return used.parts.copies.sent(call);
    }

    @Override
    public DeviceMatrix product(int index) {
        return operands.result(index);
    }

    @Override
    public Optional<DeviceMatrix> gathered() {
        return used.form.keepsGathered
                ? Optional.of(gatheredAt(buffers.address(gatheredCall & 1)))
                : Optional.empty();
    }

    /** Gathered A of that call in a buffer of whichever rank. */
    public DeviceMatrix gatheredAt(long address) {
        return buffers.gatheredAt(address, gatheredRows);
    }

    /** The latest call that gathered: rows are in the buffer of its parity. */
    public int gatheredCall() {
        return gatheredCall;
    }

    @Override
    public void close() {
        prepared.forEach(Prepared::close);
    }
}
