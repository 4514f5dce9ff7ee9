package dev.weft.sim;

import dev.weft.plan.step.Placement;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** One simulated call: the ranks that are simulated, and what they share. */
final class Simulation {

    final Machine machine;
    final Scenario scenario;
    final View view;
    final SymmetricRanks like;

    /** Null if no spans are wanted. */
    final SpanSink sink;

    final Events events = new Events();
    final Wires wires;

    /** When workers and lanes start. */
    final double startNs;

    /** By simulated rank and number; null until somebody raises it or waits for it. */
    private final Word[][] words;

    /** By first row of A: the rank that has it; -1 if several have. */
    private final TreeMap<Long, Integer> owners = new TreeMap<>();

    private final List<LaneRun> lanes = new ArrayList<>();
    private final List<ProductRun> products = new ArrayList<>();
    private final List<Runnable> joins = new ArrayList<>();
    private long transfers;

    /** Steps that are not done. */
    private long left;

    private double lastArrivalNs;
    private double doneNs;

    Simulation(Machine machine, Scenario scenario, View view, SymmetricRanks like, SpanSink sink) {
        this.machine = machine;
        this.scenario = scenario;
        this.view = view;
        this.like = like;
        this.sink = sink;
        this.wires = new Wires(events, machine, scenario, like);
        this.startNs = machine.overheads().callUs() * 1e3;
        this.words = new Word[like.count()][0];
        this.doneNs = startNs;
        List<Placement.OfRank> ranks = scenario.placement().ranks();
        for (int rank = 0; rank < ranks.size(); rank++) {
            if (ranks.get(rank).a().count() > 0) {
                owners.merge(ranks.get(rank).a().first(), rank, (one, other) -> -1);
            }
        }
    }

    Prediction run() {
        for (int rank = 0; rank < like.count(); rank++) {
            add(scenario.plans().get(rank));
        }
        lanes.forEach(LaneRun::start);
        joins.forEach(Runnable::run);
        products.forEach(ProductRun::start);
        events.run();
        return prediction();
    }

    private void add(StepPlan plan) {
        Tasks tasks = new Tasks(this, plan);
        List<List<Step>> programs = new ArrayList<>();
        int lane = 0;
        for (Worker worker : plan.workers()) {
            if (worker.kind() == Worker.Kind.MULTIPLIER) {
                programs.add(worker.steps());
            }
            if (view != View.COMPUTE_ONLY) {
                addLane(tasks, plan.rank(), lane, worker.steps());
                addJoins(tasks, worker.steps());
            }
            lane += worker.kind() == Worker.Kind.MOVER ? 1 : 0;
        }
        products.add(
                machine.engine() instanceof TileEngine
                        ? new TileRun(this, tasks, plan.rank(), programs)
                        : new CoreRun(this, tasks, plan.rank(), programs));
    }

    /** Copies of a multiplier are made beside its products. */
    private void addLane(Tasks tasks, int rank, int lane, List<Step> steps) {
        List<Tasks.CopyTask> ofLane = new ArrayList<>();
        for (Step step : steps) {
            if (step instanceof Step.Copy copy) {
                ofLane.add(tasks.copy(copy));
                transfers += copy.from().rank() == copy.to().rank() ? 0 : 1;
            }
        }
        if (!ofLane.isEmpty()) {
            lanes.add(new LaneRun(this, rank, lane, ofLane));
            left += ofLane.size();
        }
    }

    /** Joins take no time, whoever takes them. */
    private void addJoins(Tasks tasks, List<Step> steps) {
        for (Step step : steps) {
            if (step instanceof Step.Join join) {
                Waits waits = tasks.waits(join);
                Tasks.Raise raise = tasks.raise(join.signal());
                left++;
                joins.add(
                        () ->
                                waits.whenAllHaveCome(
                                        () -> done(raise, events.now(), waits.pathNs(startNs))));
            }
        }
    }

    /** Counts steps that have to be done. */
    void expect(int steps) {
        left += steps;
    }

    /** A step is done now, and raises a word unless {@code raise} is null. */
    void done(Tasks.Raise raise, double ns, double earliestNs) {
        left--;
        if (raise != null) {
            raise.word().raise(raise.value(), ns, earliestNs);
        }
    }

    /** A copy has arrived, and is known to have. */
    void arrived(Tasks.CopyTask copy, double ns, double earliestNs) {
        if (copy.from() != copy.to()) {
            lastArrivalNs = Math.max(lastArrivalNs, ns);
        }
        doneNs = Math.max(doneNs, ns);
        if (copy.raise() != null) {
            copy.raise().word().endRow = copy.endRow();
            copy.raise().word().cols = copy.cols();
        }
        done(copy.raise(), ns, earliestNs);
    }

    /** The rank that has a row of A; -1 if several have it. */
    int owner(long row) {
        Map.Entry<Long, Integer> owner = owners.floorEntry(row);
        return owner == null ? -1 : owner.getValue();
    }

    /** The row, or its place in its shard if ranks stand for others, which have as many rows. */
    long inShard(long row) {
        return like.count() == like.ranks()
                ? row
                : row % scenario.placement().ranks().getFirst().a().count();
    }

    /** Some rank is busy until then. */
    void busyUntil(double ns) {
        doneNs = Math.max(doneNs, ns);
    }

    Word word(Signal signal) {
        int rank = like.standIn(signal.rank());
        if (signal.word() >= words[rank].length) {
            int most = Math.max(signal.word() + 1, 2 * words[rank].length);
            words[rank] = Arrays.copyOf(words[rank], most);
        }
        Word word = words[rank][signal.word()];
        if (word == null) {
            word = new Word();
            words[rank][signal.word()] = word;
        }
        return word;
    }

    private Prediction prediction() {
        if (left > 0) {
            throw new IllegalStateException(left + " steps wait forever");
        }
        double lastProductNs = startNs;
        double pathNs = startNs;
        double computeNs = startNs + wires.leastNs(true);
        for (ProductRun product : products) {
            lastProductNs = Math.max(lastProductNs, product.lastNs);
            pathNs = Math.max(pathNs, product.pathNs);
            computeNs = Math.max(computeNs, product.leastNs());
        }
        double linkNs = startNs + wires.leastNs(false);
        return new Prediction(
                Math.max(doneNs, lastArrivalNs),
                lastArrivalNs,
                lastProductNs,
                new Bounds(pathNs, linkNs, computeNs),
                like.count(),
                transfers,
                events.processed());
    }
}
