package dev.weft.exec.host;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/**
 * Reports the state of a rank whose call ends in an error, as part of that error. It reads words
 * that the protocol sets anyway, so it costs nothing until then. Each worker says what it was
 * waiting for; the caller assembles the report once all workers have ended.
 */
public final class CallReport {

    private final int rank;
    private final int ranks;
    private final IntUnaryOperator worldRank;
    private final Call call;
    private final List<FailureReport.Wait> waits = new ArrayList<>();

    /** What an operator knows about its latest call. Used only once the call has stopped. */
    public interface Call {

        /** The name of the operator's memory, the same on every rank. */
        String operator();

        int number();

        /** Whether the call moves anything. */
        boolean moves();

        boolean isStarted(int rank, int number);

        /** By source and chunk: whether all that was to arrive of it has. */
        Map<Integer, Map<Integer, Boolean>> arrivals();

        /** What each lane has moved. */
        List<FailureReport.Sent> sent();
    }

    /**
     * @param rank this one, of {@code ranks}
     * @param worldRank gives the number by which errors name a rank
     */
    public CallReport(int rank, int ranks, IntUnaryOperator worldRank, Call call) {
        this.rank = rank;
        this.ranks = ranks;
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
                        worldRank.applyAsInt(rank),
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
        for (int r = 0; r < ranks; r++) {
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
        call.arrivals()
                .forEach(
                        (source, chunks) -> {
                            int arrived = 0;
                            int last = -1;
                            int missing = -1;
                            for (Map.Entry<Integer, Boolean> chunk : chunks.entrySet()) {
                                if (chunk.getValue()) {
                                    arrived++;
                                    last = chunk.getKey();
                                } else if (missing < 0) {
                                    missing = chunk.getKey();
                                }
                            }
                            all.add(
                                    new FailureReport.Received(
                                            worldRank.applyAsInt(source),
                                            arrived,
                                            chunks.size(),
                                            last,
                                            missing));
                        });
        return all;
    }
}
