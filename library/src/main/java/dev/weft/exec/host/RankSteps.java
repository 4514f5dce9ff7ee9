package dev.weft.exec.host;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One rank's plan, compiled once for all calls: who takes which steps, which words they wait for,
 * and what follows from their ends. It knows rectangles and signals, and no collective.
 */
final class RankSteps {

    /** Copies that one thread starts in order. */
    record Lane(int index, List<Step.Copy> copies, List<List<Need>> needs, List<Done> ends) {}

    /**
     * Steps that threads share: products in order, sums as soon as what they add has come.
     *
     * @param first what every thread waits for before its first task
     */
    record Program(List<Need> first, List<Task> tasks, List<Addition> additions) {}

    /**
     * What is taken at once: products that continue each other's sums, so that a thread goes on
     * with the rows and columns that it has in cache; or a copy within the rank's reach.
     *
     * @param products empty for a copy
     * @param copy null if it is none
     * @param needs by product; for a copy, one list
     * @param additions how many of the program's additions come before it
     */
    record Task(
            List<Step.Multiply> products,
            Step.Copy copy,
            List<List<Need>> needs,
            int additions,
            Done done) {}

    record Addition(Step.Add step, List<Need> needs, Done done) {}

    private final Transport fabric;
    private final StepPlan plan;
    private final StepMemory memory;
    private final RowNames names;
    private final boolean imminent;
    private final boolean staged;

    /** By signal: what follows from the step of this rank that raises it. */
    private final Map<Signal, Done> own = new HashMap<>();

    /** Signals of this rank's own moves. */
    private final Set<Signal> moves = new HashSet<>();

    /** Joins of what other ranks do, by signal: every thread that needs one waits by itself. */
    private final Map<Signal, Step> joinsOfOthers = new HashMap<>();

    private final List<Lane> lanes = new ArrayList<>();
    private final List<Program> programs = new ArrayList<>();
    private final List<Done.Join> joins = new ArrayList<>();
    private Done.Join dividing;

    /** Signals of this rank's words that other ranks raise. */
    private final Set<Need> raisedByOthers = new LinkedHashSet<>();

    /** By offset of the word: what other ranks bring. */
    private final Map<Long, Need> arrivals = new LinkedHashMap<>();

    /**
     * @param imminent whether peers do little before they start a call like this one
     * @param staged whether chunks of A come from devices one by one, once a call has started
     */
    RankSteps(
            Transport fabric,
            StepPlan plan,
            StepMemory memory,
            RowNames names,
            boolean imminent,
            boolean staged) {
        this.imminent = imminent;
        this.staged = staged;
        this.fabric = fabric;
        this.plan = plan;
        this.memory = memory;
        this.names = names;
        plan.workers().forEach(worker -> worker.steps().forEach(this::index));
        plan.workers().forEach(worker -> worker.steps().forEach(this::join));
        for (Worker worker : plan.workers()) {
            if (worker.kind() == Worker.Kind.MOVER) {
                addLane(worker);
            } else {
                addProgram(worker);
            }
        }
    }

    List<Lane> lanes() {
        return lanes;
    }

    List<Program> programs() {
        return programs;
    }

    List<Done.Join> joins() {
        return joins;
    }

    /** The waits for signals that other ranks raise here. */
    Set<Need> raisedByOthers() {
        return raisedByOthers;
    }

    /** What other ranks bring, in the order in which it is needed. */
    Collection<Need> arrivals() {
        return arrivals.values();
    }

    private void index(Step step) {
        if (step.signal() != null) {
            // A move raises the signal of its copy itself.
            boolean moved =
                    step instanceof Step.Copy copy && copy.from().rank() != copy.to().rank();
            own.put(step.signal(), new Done(moved ? null : step.signal()));
            if (moved) {
                moves.add(step.signal());
            }
        }
    }

    /** Joins of this rank's own steps end with the last of these; others are waited for. */
    private void join(Step step) {
        if (!(step instanceof Step.Join)) {
            return;
        }
        if (!own.keySet().containsAll(step.waits())) {
            joinsOfOthers.put(step.signal(), step);
            return;
        }
        Done.Join join = new Done.Join(step.waits().size(), done(step));
        step.waits().forEach(wait -> own.get(wait).ends(join));
        joins.add(join);
        dividing = join;
    }

    /** When the plan's join of this rank's own steps ended; 0 if it has none. */
    long joinedNs() {
        return dividing == null ? 0 : dividing.endNs;
    }

    /** What follows from the end of a step of this rank. */
    Done done(Step step) {
        return step.signal() == null ? new Done(null) : own.get(step.signal());
    }

    private boolean isEndedByOthers(Step step) {
        return step instanceof Step.Join && !joinsOfOthers.containsKey(step.signal());
    }

    private void addLane(Worker worker) {
        List<Step.Copy> copies = new ArrayList<>();
        for (Step step : worker.steps()) {
            if (step instanceof Step.Copy copy) {
                copies.add(copy);
            } else if (!isEndedByOthers(step)) {
                throw new IllegalArgumentException(
                        "lane %d of rank %d multiplies, adds or waits for other ranks: expected copies"
                                .formatted(lanes.size(), plan.rank()));
            }
        }
        if (!copies.isEmpty() || worker.steps().isEmpty()) {
            List<List<Need>> needs = copies.stream().map(this::needs).toList();
            lanes.add(
                    new Lane(
                            lanes.size(), copies, needs, copies.stream().map(this::done).toList()));
        }
    }

    private void addProgram(Worker worker) {
        List<Task> tasks = new ArrayList<>();
        List<Addition> additions = new ArrayList<>();
        List<Step> steps = worker.steps();
        for (int i = 0; i < steps.size(); i++) {
            Step step = steps.get(i);
            if (step instanceof Step.Multiply first) {
                List<Step.Multiply> products = new ArrayList<>(List.of(first));
                while (i + 1 < steps.size() && continues(steps.get(i + 1), products.getLast())) {
                    products.add((Step.Multiply) steps.get(++i));
                }
                tasks.add(task(products, additions.size()));
            } else if (step instanceof Step.Add add) {
                additions.add(new Addition(add, needs(add), done(add)));
            } else if (step instanceof Step.Copy copy) {
                List<List<Need>> needs = List.of(needs(copy));
                tasks.add(new Task(List.of(), copy, needs, additions.size(), done(copy)));
            }
        }
        List<Need> first =
                steps.stream()
                        .flatMap(step -> step.waits().stream())
                        .distinct()
                        .filter(joinsOfOthers::containsKey)
                        .flatMap(wait -> needs(joinsOfOthers.get(wait)).stream())
                        .toList();
        programs.add(new Program(first, tasks, additions));
    }

    private static boolean continues(Step next, Step.Multiply before) {
        return next instanceof Step.Multiply multiply
                && multiply.resume()
                && multiply.into().equals(before.into())
                && multiply.leastRows() == 0
                && before.leastRows() == 0;
    }

    private Task task(List<Step.Multiply> products, int additions) {
        List<List<Need>> needs = new ArrayList<>();
        Done last = done(products.getLast());
        for (int i = 0; i < products.size(); i++) {
            Step.Multiply product = products.get(i);
            Signal inside = i == 0 ? null : products.get(i - 1).signal();
            List<Signal> outside =
                    product.waits().stream().filter(wait -> !wait.equals(inside)).toList();
            needs.add(needs(product.with(outside, product.signal())));
            if (i + 1 < products.size() && product.signal() != null) {
                // Whoever else waits for it waits for the last one, too: they overwrite the same.
                last.ends(ofOne(product));
            }
        }
        return new Task(products, null, needs, additions, last);
    }

    private Done.Join ofOne(Step step) {
        Done.Join join = new Done.Join(1, done(step));
        joins.add(join);
        return join;
    }

    private List<Need> needs(Step step) {
        List<Need> needs = new ArrayList<>();
        if (step instanceof Step.Copy copy) {
            if (staged && copy.from().buffer() == StepPlan.A) {
                needs.add(chunk(copy));
            } else {
                addStart(copy.from(), StepPlan.A, needs);
            }
            if (copy.to().rank() != plan.rank()
                    && memory.isSingle(copy.to().rank(), copy.to().buffer())) {
                needs.add(start(copy.to().rank(), Awaited.START));
            }
        } else if (step instanceof Step.Multiply multiply) {
            addStart(multiply.a(), StepPlan.A, needs);
            addStart(multiply.b(), StepPlan.B, needs);
        }
        int chunk = 0;
        for (Signal wait : step.waits()) {
            if (!joinsOfOthers.containsKey(wait)) {
                needs.add(need(step, wait, chunk++));
            }
        }
        return List.copyOf(needs);
    }

    /** What a peer passes may be read once it has started the call. */
    private void addStart(Part part, int buffer, List<Need> needs) {
        if (part.rank() != plan.rank() && part.buffer() == buffer) {
            Need start = start(part.rank(), Awaited.SHARD);
            if (!needs.contains(start)) {
                needs.add(start);
            }
        }
    }

    /** That a device has brought the chunk that a copy moves. */
    private Need chunk(Step.Copy copy) {
        int owner = copy.from().rank();
        int chunk = names.chunk(copy.firstRow(), copy.from().firstCol());
        return staged(owner, chunk + 1, Awaited.chunk(owner, owner, chunk));
    }

    private Need staged(int owner, int count, Awaited what) {
        int all = names.chunks().count(owner);
        return new Need(owner, StepMemory.STAGED_AT, all, count, what);
    }

    /** That all of a rank's A may be read. */
    Need shard(int rank) {
        return staged
                ? staged(
                        rank,
                        names.chunks().count(rank),
                        new Awaited(Awaited.SHARD, rank, rank, -1))
                : new Need(
                        rank,
                        StepMemory.START_AT,
                        1,
                        1,
                        new Awaited(Awaited.SHARD, rank, rank, -1, 1));
    }

    private Need start(int rank, String what) {
        return new Need(
                rank, StepMemory.START_AT, 1, 1, new Awaited(what, rank, rank, -1, 1, imminent));
    }

    private Need need(Step step, Signal wait, int index) {
        if (!fabric.hosts().shareMemory(wait.rank(), plan.rank())) {
            throw new IllegalArgumentException(
                    "rank %d waits for a word of rank %d on another host: expected words of its own host"
                            .formatted(plan.rank(), wait.rank()));
        }
        int value = Math.toIntExact(wait.value());
        int stride = memory.stride();
        long row = firstRow(step);
        long col = step instanceof Step.Copy copy ? copy.from().firstCol() : 0;
        int source = names.source(row);
        int chunk = names.chunk(row, col);
        if (step instanceof Step.Multiply multiply
                && step.waits().size() == names.chunksOf(row, multiply.a().rows())) {
            chunk += index;
        }
        Awaited what = new Awaited(what(step, wait), wait.by(), source, chunk, 2 * stride - value);
        Need need = new Need(wait.rank(), StepMemory.wordAt(wait.word()), stride, value, what);
        if (wait.rank() == plan.rank() && wait.by() != plan.rank()) {
            raisedByOthers.add(need);
        }
        boolean named = !(step instanceof Step.Join) && chunk >= 0;
        if (named && isBrought(wait) && what.what() != Awaited.BUFFER) {
            arrivals.putIfAbsent(need.at() * (stride + 1L) + value, need);
        }
        return need;
    }

    /** Whether a signal says that something has come to this rank from another one. */
    private boolean isBrought(Signal wait) {
        return wait.rank() == plan.rank()
                && (wait.by() != plan.rank() || own.containsKey(wait) && moves.contains(wait));
    }

    private static long firstRow(Step step) {
        if (step instanceof Step.Copy copy) {
            return copy.firstRow();
        }
        if (step instanceof Step.Multiply multiply) {
            return multiply.firstRow();
        }
        return step instanceof Step.Add add ? add.firstRow() : 0;
    }

    /** What a signal is about, in the words of errors. */
    private String what(Step step, Signal wait) {
        if (step instanceof Step.Copy copy) {
            boolean brings = copy.from().rank() == wait.rank() && copy.from().buffer() > StepPlan.C;
            return brings ? what(copy.from(), wait) : Awaited.BUFFER;
        }
        if (step instanceof Step.Multiply multiply) {
            return what(multiply.resume() ? multiply.into() : multiply.a(), wait);
        }
        return step instanceof Step.Add add ? what(added(add, wait), wait) : Awaited.CHUNK;
    }

    /** Which addend a signal is for, if each has one: they are waited for in the order of steps. */
    private Part added(Step.Add add, Signal wait) {
        List<Part> others =
                add.addends().stream()
                        .filter(part -> part.buffer() != add.into().buffer())
                        .toList();
        return others.isEmpty() || wait.by() == plan.rank()
                ? add.addends().getFirst()
                : others.getFirst();
    }

    private String what(Part part, Signal wait) {
        if (part.rank() != plan.rank()) {
            return Awaited.CHUNK;
        }
        Buffer buffer = plan.buffers().get(part.buffer());
        return buffer.holdsSums() && wait.by() == plan.rank() ? Awaited.OWN_THREAD : what(buffer);
    }

    /** What goes to a part, in the words of errors. */
    static String what(List<StepPlan> plans, Part part) {
        return what(plans.get(part.rank()).buffers().get(part.buffer()));
    }

    private static String what(Buffer buffer) {
        return buffer.holdsSums() ? buffer.name() + " of chunk" : Awaited.CHUNK;
    }
}
