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
import dev.weft.plan.Shards;
import dev.weft.plan.group.RowGroups;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
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
    private final Runnable[] tasks;
    private final Runnable awaited;

    /** The tasks but the last, which the caller of a call runs that it waits for at once. */
    private final Runnable[] tasksOfOthers;

    private final Runnable taskOfCaller;
    private final Teams teams;
    private final boolean joinedTeams;
    private final Consumer<Throwable> onError;

    /** That of the call under way; null between calls. */
    private Team team;

    private final List<MultiplierWorker> multipliers = new ArrayList<>();
    private final StartWord start;
    private final int workers;
    private final int aIn;
    private final Grouped grouped;
    private final List<Product> results;

    /** By copy: A of the next call, if it has the rows of {@code placed}. */
    private final Matrix[] places = new Matrix[COPIES];

    private Shards placed;

    /** Likewise gathered A of the latest call. */
    private final List<Optional<Matrix>> gathered =
            new ArrayList<>(Collections.nCopies(COPIES, Optional.empty()));

    private int gatheredVersion = -1;
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
     * @param gathered the buffer of gathered A, if the caller gets it with shards one below the
     *     other; else -1
     * @param parts how many pieces a product is cut into for the threads
     * @param partsAreRows whether these are rows, not columns
     * @param grouped how rows are in groups, each with its own B; null if they are not
     * @param wanted by rank: the rows of the call that it needs; null if it is to have all
     * @param gather the transport's own all-gather, if it replaces the copies; else null
     * @param pinning what a thread that multiplies does first, with its number; null if nothing
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
            int gathered,
            int workers,
            int parts,
            boolean partsAreRows,
            Grouped grouped,
            BitSet[] wanted,
            RowGather gather,
            IntConsumer pinning) {}

    /**
     * How rows are in groups, each with its own B.
     *
     * @param rows those of this rank's groups, filled before each call
     * @param added whether A has one group's rows below the other's, and what the groups have of a
     *     row is added up; otherwise A has the rows of the call, and the result those of the groups
     * @param most the most rows of A if products are added
     * @param k its columns
     */
    public record Grouped(RowGroups rows, boolean added, long most, long k) {

        /** Into how many parts columns are cut: groups are parts of their own, unless added. */
        int columnParts(int parts) {
            return added ? parts : Math.max(1, parts / Math.max(1, rows.groups()));
        }

        /** What a rank's A is, and not what its plan says. */
        Buffer a() {
            return added ? new Buffer("A", Buffer.Kind.A, false, most, k) : null;
        }
    }

    /**
     * Collective.
     *
     * @param first runs the operator's first plan, and has the start word and the threads that all
     *     plans use; null if this is the first one
     * @param onError gets what a worker throws, on its thread
     */
    public HostExecutor(Work work, HostExecutor first, Arena arena, Consumer<Throwable> onError) {
        this.fabric = work.fabric();
        this.plan = work.plans().get(fabric.rank());
        this.results = work.results();
        this.gather = work.gather();
        this.grouped = work.grouped();
        StepMemory.Place place =
                work.aIn() < 0
                        ? null
                        : new StepMemory.Place(
                                work.aIn(), work.chunks().shards().firstRow(fabric.rank()));
        this.memory =
                new StepMemory(
                        fabric,
                        plan,
                        work.aType(),
                        place,
                        grouped == null ? null : grouped.a(),
                        arena);
        try {
            RowNames names = new RowNames(work.chunks());
            boolean imminent = work.results().isEmpty();
            this.start = first == null ? new StartWord(fabric, memory.region(), 1) : first.start;
            this.steps = new RankSteps(fabric, plan, memory, names, imminent, false);
            this.aIn = work.aIn();
            long rows = work.chunks().shards().totalRows();
            this.call =
                    new HostCall(
                            fabric,
                            memory,
                            steps,
                            names,
                            this.start.region(),
                            new HostCall.Compact(
                                    plan.buffers().get(StepPlan.A).rows() == rows,
                                    aIn,
                                    plan.buffers().get(StepPlan.C).rows() == rows,
                                    gather == null ? work.gathered() : StepPlan.C + 1));
            this.order = order(plan, work.plans());
            List<Worker> all = new ArrayList<>();
            if (gather != null) {
                all.add(
                        new GatherWorker(
                                gather,
                                StepPlan.C + 1,
                                work.chunks().shards(),
                                this::checkRowsSoFar,
                                call));
            } else {
                BitSet[] wanted = wanted(work);
                steps.lanes().forEach(lane -> movers.add(new MoverWorker(lane, call, wanted)));
                all.addAll(movers);
            }
            this.workers = Math.max(work.workers(), steps.programs().size());
            addMultipliers(work, arena);
            all.addAll(multipliers);
            this.report =
                    new CallReport(
                            fabric.rank(),
                            fabric.size(),
                            fabric::worldRank,
                            new LatestCall(work.plans()));
            logs.add(staging);
            all.forEach(worker -> logs.add(worker.log()));
            // A gather is too short to hand to another thread: its caller only waits for it anyway.
            this.awaited = work.results().isEmpty() ? all.removeLast() : null;
            this.tasks = all.toArray(Runnable[]::new);
            // The caller's thread is not pinned, nor may it be.
            boolean helps =
                    work.pinning() == null
                            && awaited == null
                            && !all.isEmpty()
                            && all.getLast() instanceof MultiplierWorker;
            this.taskOfCaller = helps ? all.getLast() : awaited;
            this.tasksOfOthers = helps ? Arrays.copyOf(tasks, tasks.length - 1) : tasks;
            this.onError = onError;
            this.joinedTeams = first == null;
            this.teams =
                    first != null
                            ? first.teams
                            : work.pinning() == null
                                    ? Teams.join(fabric)
                                    : Teams.alone(fabric, task -> pin(task, work.pinning()));
            // Steady calls then start no threads and allocate no memory.
            try {
                teams.giveBack(take());
            } catch (RuntimeException | Error e) {
                leaveTeams();
                throw e;
            }
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
            return call.operatorCall;
        }

        @Override
        public boolean moves() {
            return call.number > 0 && call.view != View.COMPUTE_ONLY;
        }

        @Override
        public boolean isStarted(int rank, int number) {
            return start.isStarted(rank, number);
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

    /** Not where ranks pass on rows that they do not need themselves. */
    private static BitSet[] wanted(Work work) {
        if (work.wanted() == null) {
            return null;
        }
        boolean fromOwners =
                work.plans().stream()
                        .flatMap(plan -> plan.workers().stream())
                        .flatMap(worker -> worker.steps().stream())
                        .allMatch(
                                step ->
                                        !(step instanceof Step.Copy copy)
                                                || copy.from().buffer() == StepPlan.A);
        return fromOwners ? work.wanted() : null;
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

    /** A team for a call, with working memory. */
    private Team take() {
        Team taken = teams.take(tasks.length);
        try {
            for (int i = 0; i < multipliers.size(); i++) {
                multipliers.get(i).prepare(taken);
            }
            return taken;
        } catch (RuntimeException | Error e) {
            teams.giveBack(taken);
            throw e;
        }
    }

    private void leaveTeams() {
        if (joinedTeams) {
            teams.leave();
        }
    }

    private static void pin(Runnable task, IntConsumer pinning) {
        if (pinning != null && task instanceof MultiplierWorker worker) {
            pinning.accept(worker.index());
        }
    }

    private void addMultipliers(Work work, Arena arena) {
        Products products =
                new Products(
                        work.gemm(),
                        work.bs(),
                        fabric.rank(),
                        work.results(),
                        work.epilogue(),
                        work.scaling(),
                        work.parts(),
                        work.partsAreRows(),
                        work.grouped());
        products.in(memory, plan, arena);
        for (RankSteps.Program program : steps.programs()) {
            programs.add(new MultiplierWorker.Shared(program, work.parts()));
        }
        int count = programs.size();
        for (int i = 0; i < workers && count > 0; i++) {
            String name =
                    count == 1
                            ? "compute-" + i
                            : "compute-%d of program-%d".formatted(i / count, i % count);
            multipliers.add(
                    new MultiplierWorker(i, name, call, programs.get(i % count), products, arena));
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

    /** The most rows that a call can have. */
    public Shards most() {
        return call.names.chunks().shards();
    }

    /**
     * The next call's A, once peers have started this rank's latest call: only then does none of
     * them read what was there two calls before.
     *
     * @param latest the number of the operator's latest call
     * @param shards the rows of the next call
     */
    public Matrix awaitNextA(int latest, Shards shards) {
        start.await(latest);
        boolean regrouped = grouped != null && grouped.added();
        if (regrouped || shards != placed && !shards.equals(placed)) {
            placed = shards;
            int rank = plan.rank();
            long rows = rows(StepPlan.A, shards);
            for (int copy = 0; copy < COPIES; copy++) {
                places[copy] =
                        aIn < 0
                                ? memory.matrix(rank, StepPlan.A, copy).rows(0, rows)
                                : memory.matrix(rank, aIn, copy).rows(shards.firstRow(rank), rows);
            }
        }
        return places[StepMemory.copy(call.number + 1)];
    }

    /**
     * Prepares A for the next call: copies it to memory that peers can reach, unless only this rank
     * reads it or it is there. A is also copied if only the caller's thread may read it, or if it
     * is a result of the call before, which the next one writes.
     *
     * @param a null if the caller has written it to {@link #awaitNextA}
     */
    public void stage(Matrix a, int latest, Shards shards) {
        Team taken = take();
        try {
            stageRows(a, latest, shards);
        } catch (RuntimeException | Error e) {
            teams.giveBack(taken);
            throw e;
        }
        team = taken;
    }

    private void stageRows(Matrix a, int latest, Shards shards) {
        long startNs = System.nanoTime();
        Matrix place = awaitNextA(latest, shards);
        boolean copies =
                plan.buffers().get(StepPlan.A).open()
                        || aIn >= 0
                        || a != null && (!PreparedEpilogue.isOfAnyThread(a) || isResult(a));
        boolean staged = a != null && copies && a.data().address() != place.data().address();
        if (staged) {
            place.copyFrom(a);
        }
        // Not before: until now, results of the call before are valid, also if the copy throws.
        call.startNs = startNs;
        call.rows.set(shards);
        staging.clear();
        if (staged) {
            int rank = plan.rank();
            staging.add(Timeline.Kind.STAGE, rank, rank, 0, place.rows(), call.startNs);
        }
        call.a = a == null || copies ? place : a;
    }

    private boolean isResult(Matrix a) {
        for (int i = 0; i < results.size(); i++) {
            for (Matrix half : results.get(i).halves()) {
                if (half.data().asOverlappingSlice(a.data()).isPresent()) {
                    return true;
                }
            }
        }
        return false;
    }

    /**
     * Starts a call whose A was staged.
     *
     * @param awaitedAtOnce whether {@link #await} follows at once: then the caller multiplies too.
     *     It saves a thread's wake-up, which takes longer than a product of few rows.
     */
    public void start(int operatorCall, View view, boolean awaitedAtOnce) {
        int number = ++call.number;
        call.operatorCall = operatorCall;
        call.view = view;
        call.gatheredNs = 0;
        programs.forEach(MultiplierWorker.Shared::begin);
        List<Done.Join> joins = steps.joins();
        for (int i = 0; i < joins.size(); i++) {
            joins.get(i).reset();
        }
        start.publish(operatorCall, call.rows.shards());
        if (view != View.COMPUTE_ONLY) {
            for (int i = 0; i < joins.size(); i++) {
                joins.get(i).start(fabric, memory, number);
            }
        }
        if (awaitedAtOnce) {
            team.start(tasksOfOthers, taskOfCaller, onError);
        } else {
            team.start(tasks, awaited, onError);
        }
    }

    public boolean isDone() {
        Team working = team;
        return (working == null || working.isDone()) && start.isStartedByAll(call.operatorCall);
    }

    public void await() {
        if (team != null) {
            team.await();
            teams.giveBack(team);
            team = null;
        }
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

    /** Gathered A of the latest call, in a buffer of this rank. */
    public Optional<Matrix> gathered(int buffer) {
        if (gatheredVersion != call.rows.version()) {
            gatheredVersion = call.rows.version();
            for (int copy = 0; copy < COPIES; copy++) {
                gathered.set(copy, Optional.of(rows(memory.matrix(plan.rank(), buffer, copy))));
            }
        }
        return gathered.get(StepMemory.copy(call.number));
    }

    /** Gathered A of the latest call on another rank; null if it is not reached from here. */
    public Matrix gathered(int rank, int buffer) {
        Matrix all = memory.matrix(rank, buffer, call.number);
        return all == null ? null : rows(all);
    }

    /** The rows of the call, one shard below the other or side by side. */
    private Matrix rows(Matrix all) {
        Shards shards = call.rows.shards();
        boolean below = all.rows() == most().totalRows();
        return call.rows.isWhole()
                ? all
                : all.rows(0, below ? shards.totalRows() : shards.maxRows());
    }

    /** The rows of the latest call in a result of this rank. */
    public long resultRows() {
        return resultRows(call.rows.shards());
    }

    /** The rows of a call in a result of this rank. */
    public long resultRows(Shards shards) {
        return rows(StepPlan.C, shards);
    }

    /** The rows of a call in a matrix of the caller, which has those of this rank or of all. */
    private long rows(int buffer, Shards shards) {
        if (grouped != null && buffer == (grouped.added() ? StepPlan.A : StepPlan.C)) {
            return grouped.rows().count();
        }
        boolean ofAll = plan.buffers().get(buffer).rows() == most().totalRows();
        return ofAll ? shards.totalRows() : shards.rows(plan.rank());
    }

    /** Refuses a matrix that is not A of a call of these rows. */
    public void checkA(Matrix a, Shards shards) {
        Matrix place = memory.matrix(plan.rank(), StepPlan.A, 0);
        long rows = rows(StepPlan.A, shards);
        if (a.rows() != rows || a.cols() != place.cols() || a.dtype() != place.dtype()) {
            throw new IllegalArgumentException(
                    "A of rank %d is %s: expected %s"
                            .formatted(
                                    fabric.worldRank(plan.rank()),
                                    a.describe(),
                                    place.rows(0, rows).describe()));
        }
    }

    /**
     * Refuses the latest call if a peer has started it with other rows. Waits for those that have
     * not started it yet.
     */
    public void checkRows() {
        start.await(call.operatorCall);
        checkRowsSoFar();
    }

    /** As {@link #checkRows}, for the peers that have started the call. */
    public void checkRowsSoFar() {
        start.check(call.operatorCall, call.rows.shards());
    }

    /** Lets peers read the results of a call. Release: pairs with {@link #awaitEnd}. */
    public void publishEnd() {
        fabric.publish(start.region(), StepMemory.ENDED_AT, call.operatorCall);
    }

    /** Waits until a peer has published the end of the latest call. */
    public void awaitEnd(int rank) {
        Awaited end = Awaited.of(Awaited.END, rank).within(1);
        fabric.await(start.region(), rank, StepMemory.ENDED_AT, call.operatorCall, end);
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
        await();
        leaveTeams();
        movers.forEach(MoverWorker::close);
        if (gather != null) {
            gather.close();
        }
        memory.close();
    }
}
