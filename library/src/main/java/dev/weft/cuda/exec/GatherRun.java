package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.fabric.FailureReport;
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

    private final Form form;
    private final Parts with;

    /** Null unless the peers are ranks that reach each other's GPUs. */
    private final DevicePeers linked;

    private int gatheredCall;

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
     * @param library whether a library multiplies, group by group of rows
     * @param products of rows that may still be on their way
     * @param ready the products of rows that have all arrived, which may be the same
     * @param launches multiplies shards that share buffers; null if every shard has its own place
     */
    public record Parts(
            CopyList list,
            boolean library,
            CudaBuffers buffers,
            DeviceOperands operands,
            Copies copies,
            List<DeviceProduct> products,
            List<DeviceProduct> ready,
            Launches launches,
            DeviceTimeline timeline) {}

    public GatherRun(Form form, Parts with, Peers peers) {
        this.form = form;
        this.with = with;
        this.linked = peers instanceof DevicePeers devices ? devices : null;
    }

    @Override
    public DeviceMatrix input(int parity) {
        return with.buffers.shard(parity);
    }

    @Override
    public void prepare() {
        with.operands.begin();
    }

    @Override
    public boolean sharesResults() {
        return form.sharesResults;
    }

    @Override
    public boolean isReadAfter(View view) {
        return view == View.COMPUTE_ONLY;
    }

    @Override
    public void run(int call, View view, GpuStream stream, CallEvents events) {
        // A rank that reads rows in place needs all peers' rows at once. Nor may it overwrite a
        // product that peers still read: they announce their rows after that.
        if (linked != null && (form.inPlace || form.sharesResults)) {
            linked.awaitAllRows(call, stream);
        }
        switch (view) {
            case COMPUTE_ONLY -> multiply(with.ready, gatheredCall, stream);
            case COMM_ONLY -> {
                if (with.launches != null) {
                    with.launches.begin(call, stream, false);
                }
                gather(call, stream);
                with.copies.awaitPushed(call, stream);
                gatheredCall = call;
            }
            case PIPELINED -> {
                gatheredCall = call;
                pipeline(call, stream, events);
            }
        }
        if (view != View.COMM_ONLY) {
            with.operands.finish(stream);
        }
    }

    /** All copies, whose end {@code stream} waits for. */
    private void gather(int call, GpuStream stream) {
        with.copies.issue(call, stream);
        with.copies.join(stream);
    }

    private void pipeline(int call, GpuStream stream, CallEvents events) {
        Copies copies = with.copies;
        List<DeviceProduct> products = with.products;
        if (form.inPlace) {
            multiply(products, call, stream);
        } else if (with.launches != null) {
            with.launches.begin(call, stream, true);
            gather(call, stream);
        } else if (form.gathersFirst) {
            gather(call, stream);
            copies.awaitPushed(call, stream);
            events.firstEnded(call, stream);
            multiply(products, call, stream);
        } else if (with.library) {
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
        if (with.launches != null) {
            long elapsedNs = events.elapsedNs(call);
            List<Timeline.Track> tracks =
                    new ArrayList<>(((CopyStreams) with.copies).tracks(call, events.beginOf(call)));
            tracks.add(with.launches.track(call, events.beginOf(call)));
            return new Timeline(with.list.rank(), seenNs - elapsedNs, elapsedNs, tracks);
        }
        List<DeviceProduct> launched =
                switch (view) {
                    case COMPUTE_ONLY -> with.ready;
                    case COMM_ONLY -> List.of();
                    case PIPELINED -> with.products;
                };
        return with.timeline.of(
                launched,
                events,
                call,
                seenNs,
                (times, zeroNs) ->
                        view == View.COMPUTE_ONLY || with.copies.areTracked()
                                ? List.of()
                                : copies(
                                        with.timeline.arrivals(times, zeroNs),
                                        firstNs > 0 ? firstNs : copiedNs(call, events)));
    }

    /** When this rank's copies had ended, as far as it knows. */
    private long copiedNs(int call, CallEvents events) {
        long ownNs = with.copies.copiedNs(events.beginOf(call));
        return ownNs > 0 ? ownNs : events.elapsedNs(call);
    }

    private List<Timeline.Track> copies(long[] ends, long copiedNs) {
        List<Timeline.Track> tracks = new ArrayList<>();
        for (CopyList.Line line : with.list.arriving()) {
            List<Timeline.Span> untimed = new ArrayList<>();
            for (Copy copy : line.copies()) {
                untimed.add(with.list.span(copy, form.elementBytes, 0, 0));
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
        return with.copies.tracks(startNs);
    }

    /** Thread blocks of the product's grid; 0 if a library chooses. */
    @Override
    public int blocks() {
        return with.products.isEmpty() ? 0 : with.products.getLast().blocks();
    }

    @Override
    public int copies() {
        return with.copies.count();
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        return with.copies.sent(call);
    }

    @Override
    public DeviceMatrix product(int index) {
        return with.operands.result(index);
    }

    @Override
    public Optional<DeviceMatrix> gathered() {
        return form.keepsGathered
                ? Optional.of(with.buffers.gathered(gatheredCall & 1))
                : Optional.empty();
    }

    /** The latest call that gathered: rows are in the buffer of its parity. */
    public int gatheredCall() {
        return gatheredCall;
    }

    @Override
    public void close() {
        with.products.forEach(DeviceProduct::close);
        with.ready.stream().filter(p -> !with.products.contains(p)).forEach(DeviceProduct::close);
        if (with.launches != null) {
            with.launches.close();
        }
        with.copies.close();
        with.timeline.close();
    }
}
