package dev.weft.sim;

import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.List;

/**
 * Executes a lane as a worker does: it continues once a put's bytes are on their way, or a get's
 * bytes are here.
 */
final class LaneRun implements Station.Customer, Events.Action {

    private final Simulation simulation;
    private final SimulatedRank rank;
    private final String track;
    private final List<Transfer> transfers;
    private final Route route = new Route();
    private int at;
    private int unserved;
    private boolean awaitsCredit;
    private double waitsSinceNs;
    private double beganNs;

    LaneRun(Simulation simulation, SimulatedRank rank, Lane lane) {
        this.simulation = simulation;
        this.rank = rank;
        this.track = "lane-" + lane.index();
        this.transfers = lane.transfers();
    }

    void start() {
        if (!transfers.isEmpty()) {
            simulation.events.add(simulation.startNs, this, 0);
        }
    }

    @Override
    public void run(int detail) {
        next();
    }

    /** Begins the transfer, or waits first for its chunk and then for its credit. */
    private void next() {
        Transfer transfer = transfers.get(at);
        if (hasChunk(transfer) && hasCredit(transfer)) {
            begin(transfer);
            return;
        }
        waitsSinceNs = simulation.events.now();
        awaitsCredit = hasChunk(transfer);
        (awaitsCredit ? receiver(transfer) : holder(transfer)).await(this);
    }

    /** Whether what the lane waits for has happened. */
    boolean isReady() {
        Transfer transfer = transfers.get(at);
        return awaitsCredit ? hasCredit(transfer) : hasChunk(transfer);
    }

    private boolean hasChunk(Transfer transfer) {
        int need = need(transfer);
        return need < 0 || holder(transfer).has(need);
    }

    private boolean hasCredit(Transfer transfer) {
        return transfer.credit() == 0 || receiver(transfer).released >= transfer.credit();
    }

    private SimulatedRank holder(Transfer transfer) {
        return simulation.rank(transfer.from());
    }

    private SimulatedRank receiver(Transfer transfer) {
        return simulation.rank(transfer.to());
    }

    private int need(Transfer transfer) {
        return holder(transfer).need(transfer, simulation.tagAt(transfer.from(), transfer));
    }

    /** The wait is over; a lane that arrived at the same time has not waited. */
    void wake() {
        double now = simulation.events.now();
        if (now > waitsSinceNs) {
            tell(SpanSink.Kind.WAIT, waitsSinceNs, now);
        }
        next();
    }

    private void begin(Transfer transfer) {
        beganNs = simulation.events.now();
        double bytes = simulation.bytes(transfer);
        int mover = rank.plan.rank();
        simulation.wires.route(transfer.from(), transfer.to(), mover, bytes, route);
        unserved = route.serve(this);
    }

    @Override
    public void served() {
        if (--unserved > 0) {
            return;
        }
        Transfer transfer = transfers.get(at);
        Machine.Overheads overheads = simulation.machine.overheads();
        double now = simulation.events.now();
        double onItsWayNs = route.latencyNs + overheads.knownNs();
        int need = need(transfer);
        double earliestNs =
                (need < 0 ? simulation.startNs : holder(transfer).pathNs(need))
                        + route.aloneNs()
                        + onItsWayNs;
        simulation.deliver(transfer, now + onItsWayNs, earliestNs);
        boolean get = transfer.initiator() == Initiator.RECEIVER;
        double freeNs = now + (get ? route.latencyNs : 0) + overheads.transferUs() * 1e3;
        tell(SpanSink.Kind.TRANSFER, beganNs, freeNs);
        rank.busyUntil(freeNs);
        rank.used(transfer.source());
        at++;
        if (at < transfers.size()) {
            simulation.events.add(freeNs, this, 0);
        }
    }

    private int otherEnd(Transfer transfer) {
        return transfer.to() == rank.plan.rank() ? transfer.from() : transfer.to();
    }

    /** The rank whose buffer, shard or rows the lane waits for. */
    private int awaited(Transfer transfer) {
        if (awaitsCredit) {
            return transfer.to();
        }
        if (simulation.scenario.sums() != null) {
            return rank.sender(need(transfer));
        }
        return transfer.initiator() == Initiator.RECEIVER ? transfer.from() : transfer.source();
    }

    private void tell(SpanSink.Kind kind, double startNs, double endNs) {
        if (simulation.sink == null) {
            return;
        }
        Transfer transfer = transfers.get(at);
        Chunk chunk = rank.plan.chunks().chunk(transfer.source(), transfer.chunk());
        int self = rank.plan.rank();
        boolean moves = kind == SpanSink.Kind.TRANSFER;
        int peer = moves ? otherEnd(transfer) : awaited(transfer);
        SpanSink.Span span =
                new SpanSink.Span(
                        kind,
                        transfer.source(),
                        peer,
                        moves ? transfer.to() : -1,
                        chunk.index(),
                        chunk.firstRow(),
                        chunk.rows(),
                        moves ? Math.round(simulation.bytes(transfer)) : 0,
                        startNs,
                        endNs);
        simulation.sink.span(self, track, span);
    }
}
