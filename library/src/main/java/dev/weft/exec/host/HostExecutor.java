package dev.weft.exec.host;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.plan.Chunks;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.IntConsumer;

/**
 * Runs one rank's plan on the CPU: a thread for each lane, and threads that multiply and add. It is
 * prepared once and called many times; a call allocates nothing on the heap (between hosts, almost
 * nothing). A rank may be one whole call ahead of a slow peer; there is no barrier. One thread at a
 * time uses it.
 */
public final class HostExecutor implements AutoCloseable {

    /** How many copies of its buffers a plan's calls use in turn. */
    public static final int COPIES = StepMemory.COPIES;

    private final Transport fabric;
    private final StepPlan plan;
    private final StepMemory memory;
    private final RankSteps steps;
    private final HostCall call;
    private final CallReport report;
    private final SpanLog staging = new SpanLog("caller", 1);
    private final List<MoverWorker> movers = new ArrayList<>();
    private final List<MultiplierWorker.Shared> programs = new ArrayList<>();
    private final RowGather gather;
    private final List<SpanLog> logs = new ArrayList<>();
    private final Team team;
    private final Need[] starts;
    private final int workers;
    private final boolean ownsAll;
    private final Order order;

    /** Whether a join divides transfers and products. */
    private enum Order {
        OVERLAPPED,
        GATHER_FIRST,
        PRODUCT_FIRST
    }

    /**
     * What is run, and with what.
     *
     * @param plans the plans of all ranks; those of others are read only for reports
     * @param chunks what reports and timelines call the rows
     * @param bs by rank and B: this rank's, and those that its plan reads
     * @param results one for each B, or for two that are joined
     * @param scaling the scaling of an A of 8 bits; else null
     * @param aIn the buffer that A is part of, -1 if it has its own memory; so that a gather need
     *     not copy it there
     * @param columnParts how many pieces a product is cut into by columns for the threads
     * @param gather the transport's own all-gather, if it replaces the copies; else null
     * @param pinning what a thread that multiplies does first, with its number
     */
    public record Work(
            Transport fabric,
            List<StepPlan> plans,
            Chunks chunks,
            DType aType,
            Scaling scaling,
            Gemm gemm,
            PackedB[][] bs,
            List<Product> results,
            PreparedEpilogue epilogue,
            int aIn,
            int workers,
            int columnParts,
            RowGather gather,
            IntConsumer pinning) {}

    /**
     * Collective.
     *
     * @param onError gets what a worker throws, on its thread
     */
    public HostExecutor(Work work, Arena arena, Consumer<Throwable> onError) {
        this.fabric = work.fabric();
        this.plan = work.plans().get(fabric.rank());
        this.gather = work.gather();
        StepMemory.Place place =
                work.aIn() < 0
                        ? null
                        : new StepMemory.Place(
                                work.aIn(), work.chunks().shards().firstRow(fabric.rank()));
        this.memory = new StepMemory(fabric, plan, work.aType(), place, arena);
        try {
            RowNames names = new RowNames(work.chunks());
            boolean imminent = work.results().isEmpty();
            this.steps = new RankSteps(fabric, plan, memory, names, imminent, false);
            this.call = new HostCall(fabric, memory, steps, names);
            this.ownsAll = place != null;
            this.order = order(plan, work.plans());
            this.starts = new Need[fabric.size()];
            for (int r = 0; r < starts.length; r++) {
                Awaited start = Awaited.of(Awaited.START, r).within(1);
                starts[r] = new Need(r, StepMemory.START_AT, 1, 0, start);
            }
            List<Worker> all = new ArrayList<>();
            if (gather != null) {
                all.add(new GatherWorker(gather, StepPlan.C + 1, work.chunks().shards(), call));
            } else {
                steps.lanes().forEach(lane -> movers.add(new MoverWorker(lane, call)));
                all.addAll(movers);
            }
            this.workers = Math.max(work.workers(), steps.programs().size());
            addMultipliers(work, arena, all);
            this.report =
                    new CallReport(
                            fabric.rank(),
                            fabric.size(),
                            fabric::worldRank,
                            new LatestCall(work.plans()));
            logs.add(staging);
            all.forEach(worker -> logs.add(worker.log()));
            // A gather is too short to hand to another thread: its caller only waits for it anyway.
            Runnable awaited = work.results().isEmpty() ? all.removeLast() : null;
            this.team =
                    new Team(
                            "weft-" + fabric.worldRank(fabric.rank()),
                            all.toArray(Runnable[]::new),
                            awaited,
                            task -> pin(task, work.pinning()),
                            onError);
        } catch (RuntimeException | Error e) {
            memory.close();
            throw e;
        }
    }

    /** What an error reports about the latest call. */
    private final class LatestCall implements CallReport.Call {

        private final List<StepPlan> plans;

        LatestCall(List<StepPlan> plans) {
            this.plans = plans;
        }

        @Override
        public String operator() {
            return memory.region().name();
        }

        @Override
        public int number() {
            return call.number;
        }

        @Override
        public boolean moves() {
            return call.number > 0 && call.view != View.COMPUTE_ONLY;
        }

        @Override
        public boolean isStarted(int rank, int number) {
            return fabric.reached(memory.region(), rank, StepMemory.START_AT, number);
        }

        @Override
        public Map<Integer, Map<Integer, Boolean>> arrivals() {
            Map<Integer, Map<Integer, Boolean>> bySource = new TreeMap<>();
            for (Need need : steps.arrivals()) {
                Awaited what = need.what();
                bySource.computeIfAbsent(what.source(), source -> new TreeMap<>())
                        .merge(what.chunk(), call.hasReached(need), Boolean::logicalAnd);
            }
            return bySource;
        }

        @Override
        public List<FailureReport.Sent> sent() {
            return movers.stream().map(mover -> mover.sent(plans)).toList();
        }
    }

    /** A rank that has nothing to multiply may still add what others have multiplied. */
    private static Order order(StepPlan plan, List<StepPlan> all) {
        boolean multiplies =
                plan.workers().stream()
                        .flatMap(worker -> worker.steps().stream())
                        .anyMatch(step -> step instanceof Step.Multiply);
        return multiplies
                ? order(plan)
                : all.stream()
                        .map(HostExecutor::order)
                        .filter(order -> order == Order.PRODUCT_FIRST)
                        .findFirst()
                        .orElse(order(plan));
    }

    private static Order order(StepPlan plan) {
        for (dev.weft.plan.step.Worker worker : plan.workers()) {
            boolean multiplied = false;
            for (Step step : worker.steps()) {
                boolean multiplies = worker.kind() == dev.weft.plan.step.Worker.Kind.MULTIPLIER;
                if (multiplies && step instanceof Step.Join) {
                    return multiplied ? Order.PRODUCT_FIRST : Order.GATHER_FIRST;
                }
                multiplied |= step instanceof Step.Multiply;
            }
        }
        return Order.OVERLAPPED;
    }

    private static void pin(Runnable task, IntConsumer pinning) {
        if (task instanceof MultiplierWorker worker) {
            pinning.accept(worker.index());
        }
    }

    private void addMultipliers(Work work, Arena arena, List<Worker> all) {
        Products products =
                new Products(
                        work.gemm(),
                        work.bs(),
                        fabric.rank(),
                        work.results(),
                        work.epilogue(),
                        work.scaling(),
                        work.columnParts());
        products.in(memory, plan);
        for (RankSteps.Program program : steps.programs()) {
            programs.add(new MultiplierWorker.Shared(program, work.columnParts()));
        }
        int count = programs.size();
        for (int i = 0; i < workers && count > 0; i++) {
            String name =
                    count == 1
                            ? "compute-" + i
                            : "compute-%d of program-%d".formatted(i / count, i % count);
            all.add(new MultiplierWorker(i, name, call, programs.get(i % count), products, arena));
        }
    }

    /** Bytes of this rank that peers can reach. */
    public long reachableBytes() {
        return memory.bytes();
    }

    public Region region() {
        return memory.region();
    }

    /** Threads that multiply. */
    public int workers() {
        return workers;
    }

    /**
     * The next call's A, once peers have started this rank's latest call: only then does none of
     * them read what was there two calls before.
     */
    public Matrix awaitNextA() {
        for (Need start : starts) {
            fabric.await(memory.region(), start.home(), start.at(), call.number, start.what());
        }
        return memory.matrix(plan.rank(), StepPlan.A, call.number + 1);
    }

    /**
     * Prepares A for the next call: copies it to memory that peers can reach, unless only this rank
     * reads it or it is there.
     *
     * @param a null if the caller has written it to {@link #awaitNextA}
     */
    public void stage(Matrix a) {
        call.startNs = System.nanoTime();
        staging.clear();
        Matrix place = awaitNextA();
        boolean copies = plan.buffers().get(StepPlan.A).open() || ownsAll;
        if (a != null && copies && a.data().address() != place.data().address()) {
            place.copyFrom(a);
            int rank = plan.rank();
            staging.add(Timeline.Kind.STAGE, rank, rank, 0, place.rows(), call.startNs);
        }
        call.a = a == null || copies ? place : a;
    }

    /** Starts a call whose A was staged. */
    public void start(int number, View view) {
        call.number = number;
        call.view = view;
        call.gatheredNs = 0;
        programs.forEach(MultiplierWorker.Shared::begin);
        List<Done.Join> joins = steps.joins();
        for (int i = 0; i < joins.size(); i++) {
            joins.get(i).reset();
        }
        // Release: pairs with the acquire of peers that read this A, that write to buffers of
        // which there is one copy, or that are about to reuse the other copy.
        fabric.publish(memory.region(), StepMemory.START_AT, number);
        if (view != View.COMPUTE_ONLY) {
            for (int i = 0; i < joins.size(); i++) {
                joins.get(i).start(fabric, memory, number);
            }
        }
        team.start();
    }

    public boolean isDone() {
        return team.isDone();
    }

    public void await() {
        team.await();
    }

    /** When the call began, by {@link System#nanoTime()}. */
    public long startNs() {
        return call.startNs;
    }

    /**
     * The part of a call in which nothing is multiplied, if the plan or the view divides them: the
     * gather before the products, or the sums after them. Otherwise 0.
     */
    public long unoverlappedNs(long endNs) {
        if (call.view == View.COMM_ONLY || order == Order.GATHER_FIRST) {
            return call.gatheredNs == 0 ? 0 : call.gatheredNs - call.startNs;
        }
        return order == Order.PRODUCT_FIRST ? endNs - Math.max(call.startNs, steps.joinedNs()) : 0;
    }

    /** A buffer of a rank in a call, which is reached from here. */
    public Matrix matrix(int rank, int buffer, int number) {
        return memory.matrix(rank, buffer, number);
    }

    /** Lets peers read the results of a call. Release: pairs with {@link #awaitEnd}. */
    public void publishEnd(int number) {
        fabric.publish(memory.region(), StepMemory.ENDED_AT, number);
    }

    /** Waits until a peer has published the end of a call. */
    public void awaitEnd(int rank, int number) {
        Awaited end = Awaited.of(Awaited.END, rank).within(1);
        fabric.await(memory.region(), rank, StepMemory.ENDED_AT, number, end);
    }

    /** What every worker did in the latest call. */
    public Timeline timeline(long elapsedNs) {
        List<Timeline.Track> tracks = logs.stream().map(l -> l.track(call.startNs)).toList();
        return new Timeline(plan.rank(), call.startNs, elapsedNs, tracks);
    }

    /** Notes that a worker, or the caller, has given up. */
    public void ended(Throwable cause) {
        report.ended(cause);
    }

    /** Adds this rank's state to an error. No call may be running. */
    public void attachTo(FabricException failure) {
        report.attachTo(failure);
    }

    /** Waits for a running call, stops the workers and frees the memory that peers can reach. */
    @Override
    public void close() {
        team.await();
        team.close();
        movers.forEach(MoverWorker::close);
        if (gather != null) {
            gather.close();
        }
        memory.close();
    }
}
