package dev.weft.sim;

import dev.weft.plan.RankPlan;
import dev.weft.plan.RowBlock;
import java.util.ArrayList;
import java.util.List;

/** Multiplies on a {@link CoreEngine}: the rank's workers take row blocks in turn. */
final class CoreRun implements ProductRun {

    private final Simulation simulation;
    private final SimulatedRank rank;
    private final CoreEngine engine;
    private final List<RowBlock> order;
    private final List<CoreWorker> workers = new ArrayList<>();
    private final List<CoreWorker> waiting = new ArrayList<>();
    private final boolean gatherFirst;
    private final long stepRows;
    private final double slowness;
    private int next;
    private double totalNs;
    private double pathNs;

    CoreRun(Simulation simulation, SimulatedRank rank) {
        this.simulation = simulation;
        this.rank = rank;
        this.engine = (CoreEngine) simulation.machine().engine();
        this.order = rank.plan().consumption();
        Scenario scenario = simulation.scenario();
        boolean whole = simulation.part() == Part.WHOLE;
        this.gatherFirst = rank.plan().pacing().gatherFirst() && whole;
        this.stepRows = whole ? rank.plan().pacing().stepRows() : 0;
        this.slowness = simulation.wires().slowness(rank.plan().rank());
        int own = scenario.hosts().size(scenario.hosts().hostOf(rank.plan().rank()));
        int count = scenario.workers() > 0 ? scenario.workers() : Math.max(1, engine.cores() / own);
        for (int i = 0; i < count; i++) {
            workers.add(new CoreWorker(simulation, rank, this, i));
        }
    }

    @Override
    public void start() {
        workers.forEach(CoreWorker::start);
    }

    @Override
    public void arrived(int tag) {
        for (int i = 0; i < waiting.size(); i++) {
            if (waiting.get(i).isReady()) {
                waiting.remove(i--).wake();
            }
        }
    }

    /** The worker is woken once {@link CoreWorker#isReady}. */
    void await(CoreWorker worker) {
        waiting.add(worker);
    }

    /** The next block that nobody has, or null. */
    RowBlock take() {
        return next < order.size() ? order.get(next++) : null;
    }

    boolean gatherFirst() {
        return gatherFirst;
    }

    /** Rows that are worth a product of their own while others are late; 0 for none. */
    long stepRows() {
        return stepRows;
    }

    long rowQuantum() {
        return engine.rowQuantum();
    }

    /** What one core takes for {@code rows} rows of {@code source}. */
    double workNs(int source, long rows) {
        Scenario scenario = simulation.scenario();
        long k = scenario.chunks().cols();
        double work = 0;
        for (long n : scenario.columns()) {
            boolean far = !simulation.machine().memory().keeps((double) k * n * Float.BYTES);
            work += engine.productNs(scenario.aType(), rows, k, n, far);
        }
        RankPlan plan = rank.plan();
        boolean fromShard = source == plan.rank() || plan.storage() == RankPlan.Storage.IN_PLACE;
        double copyGbps = simulation.machine().node().coreGbps();
        if (scenario.keepGathered()
                && fromShard
                && copyGbps > 0
                && simulation.part() == Part.WHOLE) {
            work += (double) rows * k * scenario.aType().bytes() / copyGbps;
        }
        return work * slowness;
    }

    /** The work begins, and can have begun at {@code earliestNs} at best. */
    void begins(double workNs, double earliestNs) {
        totalNs += workNs;
        pathNs = Math.max(pathNs, earliestNs + workNs);
    }

    @Override
    public double leastNs() {
        return simulation.startNs() + totalNs / workers.size();
    }

    @Override
    public double pathNs() {
        return pathNs;
    }
}
