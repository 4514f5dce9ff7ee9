package dev.weft.op.exec;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * Reports the state of a rank whose call ends in an error, as part of that error. It reads words
 * that the protocol sets anyway, so it costs nothing until then. Each worker says what it was
 * waiting for; the caller assembles the report once all workers have ended.
 */
public final class CallReport {

    private final RankPlan plan;
    private final IntUnaryOperator worldRank;
    private final Call call;
    private final List<FailureReport.Wait> waits = new ArrayList<>();

    /** What an operator knows about its latest call. Used only once the call has stopped. */
    public interface Call {

        /** The name of the operator's memory, the same on every rank. */
        String operator();

        int number();

        /** Whether the call moves any chunks. */
        boolean moves();

        boolean isStarted(int rank, int number);

        boolean hasArrived(int source, int chunk);

        /** What each lane has moved. */
        List<FailureReport.Sent> sent();
    }

    /** {@code worldRank} maps a rank to the number that errors use. */
    public CallReport(RankPlan plan, IntUnaryOperator worldRank, Call call) {
        this.plan = plan;
        this.worldRank = worldRank;
        this.call = call;
    }

    /** Notes that a worker, or the caller, has given up. */
    public synchronized void ended(Throwable cause) {
        if (cause instanceof FabricException failure) {
            failure.report().ifPresent(report -> waits.addAll(report.waits()));
        }
    }

    /** Attaches the report; call it once no worker runs. */
    public synchronized void attachTo(FabricException failure) {
        List<FailureReport.Peer> peers = new ArrayList<>();
        failure.report().ifPresent(known -> known.peers().forEach(p -> peers.add(started(p))));
        boolean moved = call.moves();
        failure.attach(
                new FailureReport(
                        worldRank.applyAsInt(plan.rank()),
                        call.operator(),
                        call.number(),
                        waits,
                        moved ? received() : List.of(),
                        moved ? call.sent() : List.of(),
                        peers));
    }

    /**
     * By the reuse rule, the peer is in the same call as this rank, the one before or the one
     * after.
     */
    private FailureReport.Peer started(FailureReport.Peer peer) {
        int number = call.number();
        for (int r = 0; r < plan.ranks(); r++) {
            if (worldRank.applyAsInt(r) == peer.rank()) {
                return peer.started(
                        call.isStarted(r, number + 1)
                                ? number + 1
                                : call.isStarted(r, number) ? number : number - 1);
            }
        }
        return peer;
    }

    private List<FailureReport.Received> received() {
        List<FailureReport.Received> all = new ArrayList<>();
        Chunks chunks = plan.chunks();
        BitSet due = new BitSet();
        plan.arrivals().forEach(lane -> lane.transfers().forEach(t -> due.set(t.tag())));
        for (int source = 0; source < plan.ranks(); source++) {
            int of = 0;
            int arrived = 0;
            int last = -1;
            int missing = -1;
            for (int c = 0; c < chunks.count(source); c++) {
                if (!due.get(chunks.tag(source, c))) {
                    continue;
                }
                of++;
                if (call.hasArrived(source, c)) {
                    arrived++;
                    last = c;
                } else if (missing < 0) {
                    missing = c;
                }
            }
            if (of > 0) {
                all.add(
                        new FailureReport.Received(
                                worldRank.applyAsInt(source), arrived, of, last, missing));
            }
        }
        return all;
    }
}
