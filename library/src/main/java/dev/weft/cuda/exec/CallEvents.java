package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.Origin;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.cuda.kernel.StallWord;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.CorruptSignalException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;

/**
 * Begin and end of a call on the device, and the host's wait for it, which has a deadline: the
 * gate's own, in the kernel, and one on the host for all else that a stream can wait for. One
 * thread at a time.
 */
public final class CallEvents implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger("dev.weft");
    private static final long MARGIN_NS = 1_000_000_000;
    private static final long LOOK_NS = 200_000_000;

    /** No card multiplies slower: 1 TFLOP/s. A long product is no stall. */
    private static final double SLOWEST_PER_NS = 1000;

    private final int rank;

    /** What the flags of calls of either parity tell of. */
    private final Expected[] expected = new Expected[2];

    private final IntUnaryOperator worldRank;
    private final CudaBuffers buffers;
    private final IntFunction<Map<Integer, Integer>> counters;
    private final Runnable heartbeat;
    private final Runnable check;
    private final long deadlineNs;
    private final long limitNs;
    private final DeviceEvent[] begin = timed();
    private final DeviceEvent[] first = timed();
    private final DeviceEvent[] end = timed();
    private final GpuStream rescue = GpuStream.urgent();
    private final DeviceEvent looked = new DeviceEvent();

    /** Where the flags are copied to when a call has failed, once. */
    private final PinnedBuffer seen;

    private boolean hasLooked;
    private boolean captured;

    /**
     * @param origins by flag: whose rows it tells of
     * @param due flags of what arrives
     * @param worldRank the number by which errors name a rank
     * @param counters by call: what the words behind the flags hold once it and all before it have
     *     ended, by index among flags and counters
     * @param heartbeat tells the peers that this rank lives
     * @param check throws what became of a peer that has failed or died
     * @param work floating-point operations of a call's products
     */
    public CallEvents(
            int rank,
            List<Origin> origins,
            int[] due,
            IntUnaryOperator worldRank,
            CudaBuffers buffers,
            IntFunction<Map<Integer, Integer>> counters,
            Runnable heartbeat,
            Runnable check,
            long deadlineNs,
            double work) {
        this.rank = rank;
        Arrays.fill(expected, new Expected(origins, due, 0));
        this.worldRank = worldRank;
        this.buffers = buffers;
        this.counters = Objects.requireNonNull(counters, "counters");
        this.heartbeat = heartbeat;
        this.check = check;
        this.seen = PinnedBuffer.allocate(4L * Math.max(1, buffers.flagCount()));
        this.deadlineNs = deadlineNs;
        this.limitNs = deadlineNs + deadlineNs / 2 + MARGIN_NS + productNs(work);
    }

    /** The longest time that any card needs for {@code work} floating-point operations. */
    public static long productNs(double work) {
        return (long) (work / SLOWEST_PER_NS);
    }

    /** Two of a kind, for calls of either parity. */
    private static DeviceEvent[] timed() {
        return new DeviceEvent[] {DeviceEvent.timed(), DeviceEvent.timed()};
    }

    /**
     * What the flags of a plan tell of.
     *
     * @param origins by flag: whose rows it tells of
     * @param due flags of what arrives
     * @param firstFlag where its flags begin
     */
    record Expected(List<Origin> origins, int[] due, int firstFlag) {}

    /** What a call waits for. */
    void expect(int call, Expected next) {
        expected[call & 1] = next;
    }

    /** Whether the next call is captured: an event of a graph tells the host nothing. */
    public void setCaptured(boolean next) {
        captured = next;
    }

    private void record(DeviceEvent[] of, int call, GpuStream stream) {
        if (!captured) {
            of[call & 1].record(stream);
        }
    }

    public void begin(int call, GpuStream stream) {
        record(begin, call, stream);
    }

    /** If gather or sums, and products, come one after the other: the first part ends here. */
    public void firstEnded(int call, GpuStream stream) {
        record(first, call, stream);
    }

    public void end(int call, GpuStream stream) {
        record(end, call, stream);
    }

    /** The event at the begin of the latest call of this parity. */
    public DeviceEvent beginOf(int call) {
        return begin[call & 1];
    }

    /** The event at the end of the latest call of this parity. */
    public DeviceEvent endOf(int call) {
        return end[call & 1];
    }

    public long elapsedNs(int call) {
        return end[call & 1].nsSince(begin[call & 1]);
    }

    /** When the first part ended, since the call's begin. */
    public long firstNs(int call) {
        return first[call & 1].nsSince(begin[call & 1]);
    }

    /**
     * Returns when the call has ended, or throws if something that it waits for never comes. What
     * the caller has queued before it takes as long as it takes.
     *
     * @param latest the latest call that was started
     */
    public void await(int call, int latest) {
        Runnable look = new Look();
        begin[call & 1].isDoneWithin(Long.MAX_VALUE, look);
        // The gate's deadline is the first to pass; this one is for what waits outside the kernel.
        if (!end[call & 1].isDoneWithin(limitNs, look)) {
            release(latest);
            waitFor(end[call & 1], limitNs);
            throw stalled("the end of the call", -1, -1);
        }
        checkStall();
    }

    /** Throws if a wait on the device has ended without what it was for. */
    public void checkStall() {
        buffers.stall()
                .raised()
                .ifPresent(
                        stall -> {
                            throw describe(stall);
                        });
    }

    /**
     * Before memory is freed: nothing may be left that waits or reads.
     *
     * @param failed whether what is queued may wait for what will not come
     */
    public void drain(int latest, boolean failed) {
        if (latest == 0) {
            return;
        }
        if (failed) {
            release(latest);
        }
        if (!waitFor(end[latest & 1], limitNs)) {
            release(latest);
            waitFor(end[latest & 1], limitNs);
        }
    }

    /** Tells the peers that this rank lives, and sees a few times a second whether they do. */
    private final class Look implements Runnable {
        private long lookedNs = System.nanoTime();

        @Override
        public void run() {
            heartbeat.run();
            long now = System.nanoTime();
            if (now - lookedNs > LOOK_NS) {
                lookedNs = now;
                check.run();
            }
        }
    }

    private boolean waitFor(DeviceEvent event, long forNs) {
        return event.isDoneWithin(forNs, heartbeat);
    }

    /**
     * By source and chunk: whether its pieces had arrived when the call failed. Flags that cannot
     * be read, since the device is at fault, count for none.
     */
    public Map<Integer, Map<Integer, Boolean>> arrivals(int call) {
        look();
        Expected of = expected[call & 1];
        Map<Integer, Map<Integer, Boolean>> bySource = new TreeMap<>();
        for (int flag : of.due()) {
            Origin origin = of.origins().get(flag);
            boolean raised = isRaised(of.firstFlag() + flag, call);
            bySource.computeIfAbsent(origin.source(), source -> new TreeMap<>())
                    .merge(origin.chunk(), raised, Boolean::logicalAnd);
        }
        return bySource;
    }

    private boolean isRaised(int flag, int call) {
        return seen.segment().get(ValueLayout.JAVA_INT, 4L * flag) - call >= 0;
    }

    private void look() {
        if (hasLooked) {
            return;
        }
        hasLooked = true;
        try {
            long bytes = 4L * buffers.flagCount();
            if (bytes > 0) {
                CudaMemory.copyAsync(seen.address(), buffers.flags(), bytes, rescue.handle());
                looked.record(rescue);
                waitFor(looked, MARGIN_NS);
            }
        } catch (RuntimeException e) {
            LOG.log(System.Logger.Level.DEBUG, "the flags on the device cannot be read", e);
        }
    }

    /** Publishes every flag, so that streams and grids that wait for them end. */
    private void release(int call) {
        look();
        for (Expected of : expected) {
            for (int flag = 0; flag < of.origins().size(); flag++) {
                long word = buffers.flags() + 4L * (of.firstFlag() + flag);
                CudaStreams.writeValue32(rescue.handle(), word, call);
            }
        }
        counters.apply(call)
                .forEach(
                        (word, value) ->
                                CudaStreams.writeValue32(
                                        rescue.handle(), buffers.flags() + 4L * word, value));
    }

    private FabricException describe(StallWord.Stall stall) {
        // A flag holds the number of the call; where counters do not, there is one plan.
        Origin origin = expected[stall.expected() & 1].origins().get(stall.flag());
        int source = worldRank.applyAsInt(origin.source());
        String awaited = "chunk " + origin.chunk() + " of rank " + source;
        if (stall.seen() - stall.expected() > 0) {
            return new CorruptSignalException(
                    worldRank.applyAsInt(rank),
                    source,
                    source,
                    origin.chunk(),
                    awaited + " on the GPU",
                    stall.seen(),
                    stall.expected(),
                    stall.expected() + 1);
        }
        return stalled(awaited, origin.source(), origin.chunk());
    }

    private StallException stalled(String awaited, int source, int chunk) {
        int own = worldRank.applyAsInt(rank);
        int peer = source < 0 ? own : worldRank.applyAsInt(source);
        return new StallException(
                own, peer, peer, chunk, awaited + " on the GPU", Duration.ofNanos(deadlineNs));
    }

    @Override
    public void close() {
        for (int parity = 0; parity < 2; parity++) {
            begin[parity].close();
            first[parity].close();
            end[parity].close();
        }
        rescue.close();
        looked.close();
        seen.close();
    }
}
