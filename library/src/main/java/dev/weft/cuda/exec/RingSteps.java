package dev.weft.cuda.exec;

import static java.util.Comparator.comparingLong;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.cuda.kernel.TimedSpan;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The products of a ring whose shards land in two buffers, one for each shard, and the releases of
 * the buffers. A shard's product is queued once the copies that bring the shard are; its stream
 * waits for them by their events. A shard is released, for the rank that writes its buffer next,
 * behind its product and behind the copies that forward it: a stream of its own joins these and
 * records the event that the writer waits for. So nothing on the device ever waits for what is
 * queued later, and no grid waits at all. One thread at a time.
 */
public final class RingSteps implements AutoCloseable {

    /** Who uses a shard: the product, and every lane. */
    private static final int PRODUCT = 0;

    private final RankPlan plan;

    /** Null if this rank is alone: then nothing arrives. */
    private final DevicePeers linked;

    private final CopyStreams.Bringers bringers;
    private final List<Step> steps;
    private final List<List<DeviceProduct>> products = new ArrayList<>();
    private final List<TimedSpan> spans = new ArrayList<>();
    private final int[] numbers;

    /** By number of release: products and forwards of the shard, and what is left of them. */
    private final int[] multiplied;

    private final int[] forwarded;
    private final int[] left;

    /** By parity of a release's number and by user: behind the latest use. */
    private final DeviceEvent[][] used;

    private final GpuStream releases = GpuStream.urgent();
    private GpuStream stream;
    private int call;
    private int next;
    private int released;

    /**
     * Rows of one shard that are multiplied together.
     *
     * @param ranges the rows, which wait for nothing any more
     * @param flags of what brings them
     */
    public record Step(int source, List<RowRange> ranges, List<Integer> flags) {}

    public RingSteps(RankPlan plan, CopyList list, DevicePeers linked) {
        this.plan = plan;
        this.linked = linked;
        this.bringers = new CopyStreams.Bringers(plan, list.flags());
        this.steps = steps(list);
        this.numbers = plan.releaseNumbers();
        this.multiplied = new int[plan.ranks()];
        this.forwarded = new int[plan.ranks()];
        this.left = new int[plan.ranks()];
        steps.forEach(step -> multiplied[numbers[step.source()]]++);
        for (Copy copy : list.lanes().stream().flatMap(List::stream).toList()) {
            forwarded[numbers[copy.source()]]++;
        }
        this.used = new DeviceEvent[2][1 + list.lanes().size()];
        for (DeviceEvent[] users : used) {
            Arrays.setAll(users, i -> new DeviceEvent());
        }
        steps.forEach(step -> spans.add(new TimedSpan()));
    }

    /** The shards in the order in which they are multiplied, each as few ranges as it can be. */
    public static List<Step> steps(CopyList list) {
        List<Step> steps = new ArrayList<>();
        List<RowRange> run = new ArrayList<>();
        for (RowRange range : list.ranges()) {
            if (!run.isEmpty() && run.getFirst().source() != range.source()) {
                steps.add(step(run));
                run.clear();
            }
            if (range.rows() > 0) {
                run.add(range);
            }
        }
        if (!run.isEmpty()) {
            steps.add(step(run));
        }
        return List.copyOf(steps);
    }

    private static Step step(List<RowRange> run) {
        List<Integer> flags =
                run.stream()
                        .flatMap(range -> range.pieces().stream())
                        .map(Piece::flag)
                        .distinct()
                        .toList();
        List<RowRange> merged = new ArrayList<>();
        for (RowRange range : run.stream().sorted(comparingLong(RowRange::sourceRow)).toList()) {
            RowRange last = merged.isEmpty() ? null : merged.getLast();
            boolean follows = last != null && last.sourceRow() + last.rows() == range.sourceRow();
            RowRange from = follows ? merged.removeLast() : range;
            long rows = follows ? last.rows() + range.rows() : range.rows();
            merged.add(
                    new RowRange(
                            from.source(), from.sourceRow(), from.row(), rows, List.of(), false));
        }
        return new Step(run.getFirst().source(), List.copyOf(merged), flags);
    }

    public List<Step> steps() {
        return steps;
    }

    /** Adds the products of the next step, which are closed with this. */
    public void add(List<DeviceProduct> ofStep) {
        products.add(List.copyOf(ofStep));
    }

    /** A call starts; without products a shard is released once it is forwarded. */
    public void begin(int ofCall, GpuStream on, boolean multiplies) {
        call = ofCall;
        stream = on;
        next = multiplies ? 0 : steps.size();
        released = 0;
        for (int number = 1; number < left.length; number++) {
            left[number] = (multiplies ? multiplied[number] : 0) + forwarded[number];
        }
        advance();
    }

    boolean hasNext() {
        return next < steps.size();
    }

    /** Whether the next product could be queued. */
    boolean launchNext() {
        if (!hasNext()) {
            return false;
        }
        Step step = steps.get(next);
        for (int flag : step.flags()) {
            if (!linked.isPushed(bringers.of(flag), call)) {
                return false;
            }
        }
        for (int flag : step.flags()) {
            linked.awaitPushed(bringers.of(flag), stream);
        }
        TimedSpan span = spans.get(next);
        span.begin(call, stream);
        for (DeviceProduct product : products.get(next)) {
            product.launch(call & 1, call, stream);
        }
        span.end(stream);
        next++;
        used(step.source(), PRODUCT, stream);
        return true;
    }

    /** Blocks for the first copy that the next product waits for; see {@link DevicePeers}. */
    void awaitNext() {
        for (int flag : steps.get(next).flags()) {
            linked.awaitQueued(bringers.of(flag), call);
        }
    }

    /** A copy of a lane is queued. */
    void copied(int lane, Copy copy, GpuStream on) {
        used(copy.source(), 1 + lane, on);
    }

    private void used(int source, int user, GpuStream on) {
        int number = numbers[source];
        if (number > 0) {
            used[number & 1][user].record(on);
            if (--left[number] == 0) {
                advance();
            }
        }
    }

    private void advance() {
        while (released + 1 < left.length && left[released + 1] <= 0) {
            released++;
            for (DeviceEvent user : used[released & 1]) {
                user.join(releases);
            }
            linked.released(call, released, releases);
        }
    }

    /** What was multiplied when, from the event at the call's begin on. */
    Timeline.Track track(int ofCall, DeviceEvent begin) {
        List<Timeline.Span> all = new ArrayList<>();
        for (int i = 0; i < steps.size(); i++) {
            TimedSpan span = spans.get(i);
            for (RowRange rows : span.isOf(ofCall) ? steps.get(i).ranges() : List.<RowRange>of()) {
                all.add(
                        Timeline.Span.local(
                                Timeline.Kind.COMPUTE,
                                rows.source(),
                                plan.rank(),
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
        Arrays.stream(used).flatMap(Arrays::stream).forEach(DeviceEvent::close);
        releases.close();
    }
}
