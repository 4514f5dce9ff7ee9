package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Launch;
import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.RowPlaces;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.TimedSpan;
import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The products of shards that share buffers, a launch for each. A product is queued once the copies
 * that bring its shard are; its stream waits for them by their events, and the copies that
 * overwrite the shard wait for the event behind it. So nothing on the device ever waits for what is
 * queued later, and no grid waits at all. Nor does a launch wait for the one before it in the list:
 * the plan does not say that it may, and the copies of the one before may need its buffer. One
 * thread at a time.
 */
public final class Launches implements AutoCloseable {

    private final CopyList list;
    private final DevicePeers linked;
    private final List<List<DeviceProduct>> products = new ArrayList<>();
    private final List<TimedSpan> spans = new ArrayList<>();

    /** By launch: whether it is queued in this call; and how many are not. */
    private final boolean[] queued;

    private int left;
    private GpuStream stream;
    private boolean multiplies;
    private int call;

    public Launches(CopyList list, DevicePeers linked) {
        this.list = list;
        this.linked = linked;
        list.launches().forEach(launch -> spans.add(new TimedSpan()));
        this.queued = new boolean[spans.size()];
    }

    /** Adds the products of the next launch, which are closed with this. */
    public void add(List<DeviceProduct> ofLaunch) {
        products.add(List.copyOf(ofLaunch));
    }

    void setRows(RowPlaces.Call rows, GpuStream on) {
        for (List<DeviceProduct> ofLaunch : products) {
            ofLaunch.forEach(product -> product.setRows(rows, on));
        }
    }

    /** A call starts; if it does not multiply, buffers are free as soon as products could begin. */
    public void begin(int ofCall, GpuStream on, boolean multiply) {
        call = ofCall;
        stream = on;
        multiplies = multiply;
        Arrays.fill(queued, false);
        left = queued.length;
    }

    boolean hasNext() {
        return left > 0;
    }

    /** Whether a product could be queued: the first whose copies are. */
    boolean launchNext() {
        for (int i = 0; left > 0 && i < queued.length; i++) {
            if (!queued[i] && linked.areQueued(list.launches().get(i).waits(), call)) {
                launch(i);
                return true;
            }
        }
        return false;
    }

    private void launch(int index) {
        Launch launch = list.launches().get(index);
        linked.awaitDone(launch.waits(), stream);
        if (multiplies) {
            TimedSpan span = spans.get(index);
            span.begin(call, stream);
            for (DeviceProduct product : products.get(index)) {
                product.launch(call & 1, call, stream);
            }
            span.end(stream);
        }
        int word = list.flags() + index;
        linked.raise(list.rank(), word, Raised.PRODUCT, launch.slot(), call, stream);
        queued[index] = true;
        left--;
    }

    /** Blocks for the copies that the first product left waits for; see {@link DevicePeers}. */
    void awaitNext() {
        int first = 0;
        while (queued[first]) {
            first++;
        }
        linked.awaitQueued(list.launches().get(first).waits(), call);
    }

    /** What was multiplied when, from the event at the call's begin on. */
    Timeline.Track track(int ofCall, DeviceEvent begin) {
        List<Timeline.Span> all = new ArrayList<>();
        for (int i = 0; i < spans.size(); i++) {
            TimedSpan span = spans.get(i);
            for (RowRange rows :
                    span.isOf(ofCall) ? list.launches().get(i).ranges() : List.<RowRange>of()) {
                all.add(
                        Timeline.Span.local(
                                Timeline.Kind.COMPUTE,
                                rows.source(),
                                list.rank(),
                                rows.sourceRow(),
                                rows.rows(),
                                span.beginNs(begin),
                                span.endNs(begin)));
            }
        }
        return new Timeline.Track("compute", all);
    }

    @Override
    public void close() {
        products.stream().flatMap(List::stream).forEach(DeviceProduct::close);
        spans.forEach(TimedSpan::close);
    }
}
