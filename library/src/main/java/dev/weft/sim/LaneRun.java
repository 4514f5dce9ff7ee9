package dev.weft.sim;

import dev.weft.plan.step.Step;
import dev.weft.sim.Tasks.CopyTask;
import java.util.List;

/**
 * Executes a lane as a worker does: it takes its copies in order, and continues once a put's bytes
 * are on their way, or a get's bytes are here.
 */
final class LaneRun implements Station.Customer, Events.Action {

    private final Simulation simulation;
    private final int rank;
    private final String track;
    private final List<CopyTask> copies;
    private final Route route = new Route();
    private int at;
    private int unserved;
    private double waitsSinceNs;
    private double beganNs;

    LaneRun(Simulation simulation, int rank, int index, List<CopyTask> copies) {
        this.simulation = simulation;
        this.rank = rank;
        this.track = "lane-" + index;
        this.copies = copies;
    }

    void start() {
        if (!copies.isEmpty()) {
            simulation.events.add(simulation.startNs, this, 0);
        }
    }

    @Override
    public void run(int detail) {
        next();
    }

    /** Begins the copy, or waits first for what it needs. */
    private void next() {
        CopyTask copy = copies.get(at);
        int missing = copy.waits().missing(0);
        if (missing == copy.waits().words().length) {
            begin(copy);
        } else {
            waitsSinceNs = simulation.events.now();
            copy.waits().await(missing, () -> continueAfter(missing));
        }
    }

    /** A lane that arrived at the same time has not waited. */
    private void continueAfter(int wait) {
        double now = simulation.events.now();
        if (now > waitsSinceNs && simulation.sink != null) {
            report(SpanSink.Activity.WAIT, awaited(wait), waitsSinceNs, now);
        }
        next();
    }

    /** The owner of the rows, the rank whose buffer was in use, or the one that summed. */
    private int awaited(int wait) {
        Step.Copy step = copies.get(at).step();
        int by = step.waits().get(wait).by();
        int owner = simulation.owner(step.firstRow());
        return owner < 0 || by == step.to().rank() ? by : owner;
    }

    private void begin(CopyTask copy) {
        beganNs = simulation.events.now();
        simulation.wires.route(copy.from(), copy.to(), rank, copy.bytes(), route);
        unserved = route.serve(this);
        if (unserved == 0) {
            moved();
        }
    }

    @Override
    public void served() {
        if (--unserved == 0) {
            moved();
        }
    }

    private void moved() {
        CopyTask copy = copies.get(at);
        Machine.Overheads overheads = simulation.machine.overheads();
        double now = simulation.events.now();
        double onItsWayNs = route.latencyNs + overheads.knownNs();
        double earliestNs = copy.waits().pathNs(simulation.startNs) + route.aloneNs() + onItsWayNs;
        double arrivesNs = now + onItsWayNs;
        simulation.events.add(
                arrivesNs, ignored -> simulation.arrived(copy, arrivesNs, earliestNs), 0);
        boolean get = copy.to() == rank;
        double freeNs = now + (get ? route.latencyNs : 0) + overheads.transferUs() * 1e3;
        if (simulation.sink != null) {
            report(SpanSink.Activity.TRANSFER, get ? copy.from() : copy.to(), beganNs, freeNs);
        }
        simulation.busyUntil(freeNs);
        at++;
        if (at < copies.size()) {
            simulation.events.add(freeNs, this, 0);
        }
    }

    private void report(SpanSink.Activity kind, int peer, double startNs, double endNs) {
        CopyTask copy = copies.get(at);
        boolean moves = kind == SpanSink.Activity.TRANSFER;
        simulation.sink.span(
                rank,
                track,
                new SpanSink.Span(
                        kind,
                        peer,
                        moves ? copy.to() : -1,
                        copy.step().firstRow(),
                        copy.step().to().rows(),
                        copy.step().to().firstCol(),
                        moves ? Math.round(copy.bytes()) : 0,
                        startNs,
                        endNs));
    }
}
