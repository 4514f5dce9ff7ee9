package dev.weft.cli.diagnosis;

import dev.weft.cli.console.TextTable;
import dev.weft.cli.diagnosis.FailureDiagnosis.ProcessEnd;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.FailureReport.Peer;
import dev.weft.fabric.FailureReport.Received;
import dev.weft.fabric.FailureReport.Sent;
import dev.weft.fabric.FailureReport.State;
import dev.weft.fabric.FailureReport.Wait;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** What the ranks of a failed run reported, one row each. */
public final class FailureTable {

    private static final int MOST_SHOWN = 2;

    private FailureTable() {}

    /**
     * @param ends as in {@link FailureDiagnosis}
     */
    public static List<String> lines(
            int ranks, List<RankFailure> ends, Map<Integer, ProcessEnd> processEnds) {
        TextTable table =
                TextTable.of("rank|call|end|waits for|ms|has not received|sent|idle peers");
        for (int rank = 0; rank < ranks; rank++) {
            int row = rank;
            Optional<RankFailure> end = ends.stream().filter(e -> e.rank() == row).findFirst();
            FailureReport report = end.flatMap(RankFailure::report).orElse(null);
            String how =
                    processEnds.containsKey(rank)
                            ? processEnds.get(rank).words()
                            : end.map(e -> e.reason().words).orElse("said nothing");
            if (report == null) {
                table.row(Integer.toString(rank), "-", how, "-", "-", "-", "-", "-");
                continue;
            }
            Optional<Wait> wait = mainWait(report);
            table.row(
                    Integer.toString(rank),
                    report.call() < 0 ? "-" : Integer.toString(report.call()),
                    how,
                    wait.map(w -> w.thread() + ": " + w.awaited()).orElse("-"),
                    wait.map(w -> Long.toString(w.waitedMs())).orElse("-"),
                    received(report),
                    sent(report),
                    idle(report));
        }
        return table.lines();
    }

    /** The number of ranks, if it is known only from their reports. */
    public static int ranks(List<RankFailure> ends) {
        int most = 0;
        for (RankFailure end : ends) {
            most = Math.max(most, end.rank());
            if (end.report().isPresent()) {
                for (Peer peer : end.report().get().peers()) {
                    most = Math.max(most, peer.rank());
                }
                for (Wait wait : end.report().get().waits()) {
                    most = Math.max(most, wait.from());
                }
            }
        }
        return most + 1;
    }

    /** The longest wait of all threads; a wait for a peer comes before one for an own lane. */
    private static Optional<Wait> mainWait(FailureReport report) {
        return report.waits().stream()
                .max(
                        Comparator.comparing((Wait w) -> w.from() != report.rank())
                                .thenComparing(Wait::waitedMs));
    }

    private static String received(FailureReport report) {
        if (report.received().isEmpty()) {
            return "-";
        }
        List<Received> missing = report.received().stream().filter(r -> r.missing() >= 0).toList();
        return missing.isEmpty()
                ? "all came"
                : some(
                        missing.stream()
                                .map(
                                        r ->
                                                "chunk %s of rank %s (%s/%s)"
                                                        .formatted(
                                                                r.missing(),
                                                                r.source(),
                                                                r.arrived(),
                                                                r.of()))
                                .toList());
    }

    private static String sent(FailureReport report) {
        return some(report.sent().stream().map(FailureTable::sent).toList());
    }

    private static String sent(Sent lane) {
        String latest = lane.latest() == null ? "" : ": " + lane.latest();
        return "%s %s/%s%s".formatted(lane.lane(), lane.done(), lane.of(), latest);
    }

    private static String idle(FailureReport report) {
        return some(
                report.peers().stream()
                        .sorted(
                                Comparator.comparing((Peer p) -> !isGone(p))
                                        .thenComparing(p -> -p.silentMs())
                                        .thenComparing(p -> -p.idleMs()))
                        .map(FailureTable::idle)
                        .toList());
    }

    /** A failed peer has given up like this rank: that says nothing. */
    private static boolean isGone(Peer peer) {
        return peer.state() != State.PRESENT && peer.state() != State.FAILED;
    }

    private static String idle(Peer peer) {
        String state =
                isGone(peer)
                        ? peer.state().name().toLowerCase(Locale.ROOT)
                        : Math.max(peer.idleMs(), peer.silentMs()) + " ms";
        return "rank " + peer.rank() + " " + state;
    }

    private static String some(List<String> texts) {
        return texts.isEmpty()
                ? "-"
                : texts.stream().limit(MOST_SHOWN).collect(Collectors.joining(", "))
                        + (texts.size() > MOST_SHOWN ? ", ..." : "");
    }
}
