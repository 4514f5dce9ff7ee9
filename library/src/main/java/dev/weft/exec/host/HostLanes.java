package dev.weft.exec.host;

import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * The lanes of a rank's plan between the ranks' host memories, for ranks on devices that reach only
 * their own: a device brings what the lanes send, and fetches what has come. Lanes run as on the
 * CPU. Chunks of A are told of by their number ({@link #staged}), all else by the end of the step
 * that the device has taken ({@link #done}). One thread at a time starts and awaits calls.
 */
public final class HostLanes implements AutoCloseable {

    private static final int GATHERED = StepPlan.C + 1;

    private final Transport fabric;
    private final List<StepPlan> plans;
    private final StepMemory memory;
    private final RankSteps steps;
    private final HostCall call;
    private final RowGather gather;
    private final boolean published;
    private final int chunks;
    private final List<MoverWorker> movers = new ArrayList<>();
    private final List<SpanLog> logs = new ArrayList<>();
    private final Team team;
    private Runnable[] tasks;
    private Consumer<Throwable> onError;

    /**
     * Collective. The caller closes the region.
     *
     * @param plans of all ranks
     * @param chunks what reports and timelines call the rows, and in which A comes
     * @param gather the transport's own all-gather, if it replaces the copies; else null
     */
    public HostLanes(
            Transport fabric, List<StepPlan> plans, Chunks chunks, DType aType, RowGather gather) {
        this.fabric = fabric;
        this.plans = plans;
        this.gather = gather;
        this.team = new Team("weft-" + fabric.worldRank(fabric.rank()));
        StepPlan plan = plans.get(fabric.rank());
        this.memory = new StepMemory(fabric, plan, aType, null, null, null);
        try {
            RowNames names = new RowNames(chunks);
            this.steps = new RankSteps(fabric, plan, memory, names, false, true);
            int gathered = gather == null ? -1 : GATHERED;
            this.call =
                    new HostCall(
                            fabric,
                            memory,
                            steps,
                            names,
                            memory.region(),
                            new HostCall.Compact(false, -1, false, gathered));
            call.view = View.PIPELINED;
            this.chunks = chunks.count(fabric.rank());
            boolean gets =
                    steps.lanes().stream()
                            .flatMap(lane -> lane.copies().stream())
                            .anyMatch(copy -> copy.from().rank() != fabric.rank());
            boolean anyGets = Arrays.stream(fabric.exchange(gets ? 1 : 0)).anyMatch(v -> v > 0);
            this.published = gather != null || anyGets;
        } catch (RuntimeException | Error e) {
            memory.region().close();
            throw e;
        }
    }

    /**
     * Starts the threads.
     *
     * @param stage what a thread does in every call to tell the lanes of what the device has
     *     brought
     * @param onError gets what a thread throws, on that thread
     */
    public void start(Runnable stage, Consumer<Throwable> onError) {
        List<Runnable> all = new ArrayList<>();
        if (gather != null) {
            GatherWorker worker =
                    new GatherWorker(
                            gather, GATHERED, call.names.chunks().shards(), () -> {}, call);
            logs.add(worker.log());
            // In one thread: what it tells of must have left before the fabric is busy gathering.
            all.add(
                    new Named(
                            "gather",
                            () -> {
                                stage.run();
                                worker.run();
                            }));
        } else {
            all.add(new Named("stage", stage));
            for (RankSteps.Lane lane : steps.lanes()) {
                movers.add(new MoverWorker(lane, call, null));
                logs.add(movers.getLast().log());
            }
            all.addAll(movers);
        }
        tasks = all.toArray(Runnable[]::new);
        this.onError = onError;
        team.reserve(tasks.length);
    }

    /** A task with a name. */
    private record Named(String name, Runnable task) implements Runnable {

        @Override
        public void run() {
            task.run();
        }

        @Override
        public String toString() {
            return name;
        }
    }

    public Region region() {
        return memory.region();
    }

    /** Where this rank's buffers begin in its part of the region: a page. */
    public long buffersAt() {
        return memory.buffersAt();
    }

    /** A buffer of this rank in a call. */
    public Matrix matrix(int buffer, int number) {
        return memory.matrix(fabric.rank(), buffer, number);
    }

    /** Where a copy to this rank puts its first row, in a call of the rows that are set. */
    public long firstRow(Step.Copy copy) {
        Part to = copy.to();
        return to.firstRow() + call.shift(to.rank(), to.buffer(), copy.firstRow());
    }

    /** The rows of the next calls. None may be running. */
    public void setRows(Shards shards) {
        call.rows.set(shards);
    }

    /** Starts a call. All ranks have announced it. */
    public void begin(int number) {
        call.begin(number);
        List<Done.Join> joins = steps.joins();
        for (int i = 0; i < joins.size(); i++) {
            joins.get(i).reset();
        }
        for (int i = 0; i < joins.size(); i++) {
            joins.get(i).start(fabric, memory, number);
        }
        team.start(tasks, null, onError);
    }

    /** The call that has begun, for the thread that stages. */
    public int number() {
        return call.number;
    }

    /**
     * A chunk of A is in host memory, and all before it are. Release: pairs with the acquire of the
     * lanes that send it, here or on the ranks that get it.
     */
    public void staged(int chunk) {
        int value = (call.number - 1) * chunks + chunk + 1;
        if (published) {
            fabric.publish(memory.region(), StepMemory.STAGED_AT, value);
        } else {
            fabric.signal(memory.region(), fabric.rank(), StepMemory.STAGED_AT, value);
        }
        fabric.worked();
    }

    /** A step of this rank has ended, and what it wrote is in host memory, as far as it is sent. */
    public void done(Step step) {
        call.end(steps.done(step));
        fabric.worked();
    }

    /** What a wait for a copy to this rank is for. */
    public Awaited arrival(Step.Copy copy) {
        int source = call.names.source(copy.firstRow());
        int chunk = call.names.chunk(copy.firstRow(), copy.to().firstCol());
        int lead = 2 * memory.stride() - (int) copy.signal().value();
        return new Awaited(
                RankSteps.what(plans, copy.to()), copy.signal().by(), source, chunk, lead);
    }

    /** Returns when a signal that is raised at this rank has come; throws if a peer has failed. */
    public void await(Signal signal, Awaited what) {
        int value = (call.number - 1) * memory.stride() + (int) signal.value();
        long at = StepMemory.wordAt(signal.word());
        fabric.await(memory.region(), fabric.rank(), at, value, what);
    }

    /** Returns when all that the call sends has been sent. */
    public void await() {
        team.await();
    }

    /** What was moved in the latest call, for an error; no call may be running. */
    public List<FailureReport.Sent> sent() {
        return movers.stream().map(mover -> mover.sent(plans)).toList();
    }

    /** What the threads did in the latest call, from {@code startNs} on. */
    public List<Timeline.Track> tracks(long startNs) {
        return logs.stream().map(log -> log.track(startNs)).toList();
    }

    /** Waits for a running call and stops the threads. */
    @Override
    public void close() {
        team.await();
        team.close();
        movers.forEach(MoverWorker::close);
        if (gather != null) {
            gather.close();
        }
    }
}
