package dev.weft.sim;

import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.List;

/** One simulated call: the ranks that are simulated, and what they share. */
final class Simulation {

    final Machine machine;
    final Scenario scenario;
    final SimulatedView view;
    private final SymmetricRanks like;

    /** Null if no spans are wanted. */
    final SpanSink sink;

    final Events events = new Events();
    final Wires wires;
    private final List<SimulatedRank> ranks = new ArrayList<>();
    private final List<ProductRun> products = new ArrayList<>();

    /** When workers and lanes start. */
    final double startNs;

    private long transfers;

    Simulation(
            Machine machine,
            Scenario scenario,
            SimulatedView view,
            SymmetricRanks like,
            SpanSink sink) {
        this.machine = machine;
        this.scenario = scenario;
        this.view = view;
        this.like = like;
        this.sink = sink;
        this.wires = new Wires(events, machine, scenario, like);
        this.startNs = machine.overheads().callUs() * 1e3;
    }

    Prediction run() {
        List<LaneRun> lanes = new ArrayList<>();
        // If sums go from rank to rank, lanes wait for products in any view.
        boolean multiplies =
                scenario.sums() != null
                        || view != SimulatedView.COMM_ONLY && !scenario.columns().isEmpty();
        for (int r = 0; r < like.count(); r++) {
            SimulatedRank rank = new SimulatedRank(scenario.plans().get(r), view, multiplies);
            rank.busyUntil(startNs);
            ranks.add(rank);
            for (Lane lane :
                    view == SimulatedView.COMPUTE_ONLY ? List.<Lane>of() : rank.plan.lanes()) {
                lanes.add(new LaneRun(this, rank, lane));
                transfers += lane.transfers().size();
            }
            if (multiplies) {
                ProductRun product =
                        machine.engine() instanceof TileEngine
                                ? new TileRun(this, rank)
                                : new CoreRun(this, rank);
                rank.product = product;
                products.add(product);
            }
        }
        lanes.forEach(LaneRun::start);
        products.forEach(ProductRun::start);
        events.run();
        return prediction();
    }

    private Prediction prediction() {
        double ns = 0;
        double gatherNs = 0;
        double pathNs = startNs;
        double computeNs = startNs + wires.leastNs(true);
        for (SimulatedRank rank : ranks) {
            if (!rank.isComplete()) {
                throw new IllegalStateException(
                        "rank " + rank.plan.rank() + " never got all its chunks");
            }
            ns = Math.max(ns, Math.max(rank.doneNs, rank.lastArrivalNs));
            gatherNs = Math.max(gatherNs, rank.lastArrivalNs);
        }
        double lastProductNs = 0;
        for (ProductRun product : products) {
            lastProductNs = Math.max(lastProductNs, product.lastNs);
            pathNs = Math.max(pathNs, product.pathNs);
            computeNs = Math.max(computeNs, product.leastNs());
        }
        double linkNs = startNs + wires.leastNs(false);
        Bounds bounds = new Bounds(pathNs, linkNs, computeNs);
        if (scenario.sums() != null && view == SimulatedView.PIPELINED) {
            gatherNs = ns - lastProductNs;
        }
        return new Prediction(ns, gatherNs, bounds, like.count(), transfers, events.happened());
    }

    /** The rank that stands for {@code number}. */
    SimulatedRank rank(int number) {
        return ranks.get(like.standIn(number));
    }

    /** The number of a transfer's chunk as the stand-in of {@code viewer} sees it. */
    int tagAt(int viewer, Transfer transfer) {
        int source = like.seen(transfer.source(), viewer);
        return scenario.chunks().tag(source, transfer.chunk());
    }

    double bytes(Transfer transfer) {
        Chunk chunk = scenario.chunks().chunk(transfer.source(), transfer.chunk());
        int elementBytes =
                scenario.sums() == null
                        ? scenario.aType().bytes()
                        : scenario.sums().wireBytes(transfer.slot());
        return (double) chunk.rows() * chunk.cols() * elementBytes;
    }

    void deliver(Transfer transfer, double arrivesNs, double earliestNs) {
        int tag = tagAt(transfer.to(), transfer);
        SimulatedRank receiver = rank(transfer.to());
        int event = receiver.arrival(transfer, tag);
        events.add(arrivesNs, ignored -> receiver.arrive(event, arrivesNs, earliestNs), 0);
    }
}
