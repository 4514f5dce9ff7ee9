package dev.weft.cli.diagnosis;

import dev.weft.cli.diagnosis.RankFailure.Reason;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.FailureReport.State;
import dev.weft.fabric.FailureReport.Wait;
import dev.weft.fabric.transport.Awaited;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Which rank failed first when ranks give up, from what each of them reported: one that died or
 * failed on its own, or one that others wait for while it waits for nobody. If a rank reports that
 * it sent something that another one never received, the signal between them was lost. Used by one
 * thread.
 */
public final class FailureDiagnosis {

    /**
     * What the starter of a rank knows about its end.
     *
     * @param cause whether it ended on its own
     * @param words what follows {@code rank 3}
     */
    public record ProcessEnd(boolean cause, String words) {}

    /** Stands for a peer that is not known. */
    private static final int ANY = -1;

    private final Map<Integer, RankFailure> ends = new TreeMap<>();
    private final List<RankFailure> all;
    private final Map<Integer, ProcessEnd> processEnds;

    /** By rank: what it was waiting for at the end; empty if it was not waiting. */
    private final Map<Integer, List<Wait>> stuck = new TreeMap<>();

    /**
     * @param ends the failures of the ranks that could report
     * @param processEnds by rank: what its starter knows about ranks that have not reported
     *     everything
     */
    public FailureDiagnosis(List<RankFailure> ends, Map<Integer, ProcessEnd> processEnds) {
        this.all = ends;
        this.processEnds = new TreeMap<>(processEnds);
        ends.forEach(end -> this.ends.putIfAbsent(end.rank(), end));
        long least = leastWaitMs(ends);
        for (RankFailure end : ends) {
            List<Wait> waits = waits(end).stream().filter(w -> w.waitedMs() >= least).toList();
            if (!edges(end.rank(), waits).isEmpty()) {
                stuck.put(end.rank(), waits);
            }
        }
    }

    private static List<Wait> waits(RankFailure end) {
        return end.report().map(FailureReport::waits).orElse(List.of());
    }

    /**
     * A rank that had waited much less than those that gave up was not waiting while they were: it
     * was late itself. Half is enough, since ranks notice a stall at about the same time.
     */
    private static long leastWaitMs(List<RankFailure> ends) {
        boolean stalled = ends.stream().anyMatch(end -> end.reason() == Reason.STALL);
        return ends.stream()
                        .filter(end -> !stalled || end.reason() == Reason.STALL)
                        .mapToLong(FailureDiagnosis::longestMs)
                        .reduce(stalled ? Math::min : Math::max)
                        .orElse(0)
                / 2;
    }

    private static long longestMs(RankFailure end) {
        return waits(end).stream().mapToLong(Wait::waitedMs).max().orElse(0);
    }

    /** One line that names the rank that failed first and the cause; empty if none is known. */
    public Optional<String> line() {
        return Stream.<Supplier<Optional<String>>>of(
                        this::killed,
                        this::failed,
                        this::corrupt,
                        this::dead,
                        this::lostSignal,
                        this::awaited,
                        this::circle,
                        this::silent)
                .map(Supplier::get)
                .flatMap(Optional::stream)
                .findFirst();
    }

    private Optional<String> killed() {
        return processEnds.entrySet().stream()
                .filter(processEnd -> processEnd.getValue().cause())
                .map(
                        processEnd ->
                                named(processEnd.getKey(), processEnd.getValue().words())
                                        + alsoReported())
                .findFirst();
    }

    /** What a rank that could not report told its peers, if anything. */
    private String alsoReported() {
        Optional<RankFailure> known =
                first(Reason.LOST).isPresent() ? Optional.empty() : first(Reason.PEER_FAILED);
        return known.map(end -> "; " + end.message()).orElse("");
    }

    private Optional<String> failed() {
        return first(Reason.OWN)
                .map(
                        end ->
                                end.rank() < 0
                                        ? end.message()
                                        : "rank " + end.rank() + " failed: " + end.message());
    }

    private Optional<String> corrupt() {
        return first(Reason.CORRUPT).map(RankFailure::message);
    }

    private Optional<RankFailure> first(Reason reason) {
        return all.stream().filter(end -> end.reason() == reason).findFirst();
    }

    /** Names a rank that the others know to be gone. */
    private Optional<String> dead() {
        Map<Integer, String> gone = new TreeMap<>();
        for (RankFailure end : all) {
            for (FailureReport.Peer peer :
                    end.report().map(FailureReport::peers).orElse(List.of())) {
                boolean isAwaited = edges(end.rank(), waits(end)).contains(peer.rank());
                if (peer.state() == State.DEAD) {
                    gone.put(peer.rank(), "died");
                } else if (peer.state() == State.LEFT && isAwaited) {
                    gone.putIfAbsent(peer.rank(), "left before it had signalled all");
                }
            }
        }
        return gone.entrySet().stream()
                .map(peer -> named(peer.getKey(), peer.getValue()))
                .findFirst();
    }

    /** Only for a rank that was stuck itself: a late one may have sent after the other gave up. */
    private Optional<String> lostSignal() {
        for (Map.Entry<Integer, List<Wait>> waiting : stuck.entrySet()) {
            int rank = waiting.getKey();
            for (Wait wait : waiting.getValue()) {
                RankFailure from = ends.get(wait.from());
                if (wait.from() != rank && stuck.containsKey(wait.from()) && from != null) {
                    FailureReport here = ends.get(rank).report().orElseThrow();
                    FailureReport there = from.report().orElseThrow();
                    String sent = sent(wait, here, there);
                    if (sent != null) {
                        return Optional.of(
                                "a signal was lost: rank %s has %s, rank %s never got it"
                                        .formatted(wait.from(), sent, rank));
                    }
                }
            }
        }
        return Optional.empty();
    }

    /** What {@code there} has done that {@code here} still waits for; null if nothing. */
    private static String sent(Wait wait, FailureReport here, FailureReport there) {
        if (here.operator().isEmpty() || !here.operator().equals(there.operator())) {
            return null;
        }
        if (wait.what().equals(Awaited.COLLECTIVE)) {
            boolean entered =
                    there.waits().stream()
                            .filter(other -> other.what().equals(Awaited.COLLECTIVE))
                            .anyMatch(other -> other.number() - wait.number() >= 0);
            return entered ? "entered collective call " + wait.number() : null;
        }
        if (wait.what().equals(Awaited.START) || wait.what().equals(Awaited.SHARD)) {
            return there.call() - wait.number() >= 0 ? "started call " + wait.number() : null;
        }
        if (wait.chunk() < 0) {
            return null;
        }
        Stream<FailureReport.Run> runs =
                there.sent().stream().flatMap(lane -> lane.runs().stream());
        boolean done =
                there.call() - here.call() > 0
                        || there.call() == here.call()
                                && runs.anyMatch(run -> run.covers(here.rank(), wait));
        return done
                ? "sent %s %s of rank %s in call %s"
                        .formatted(wait.what(), wait.chunk(), wait.source(), here.call())
                : null;
    }

    /** The ranks at the end of the chains of waits: those that wait for nobody. */
    private Optional<String> awaited() {
        TreeSet<Integer> last = new TreeSet<>();
        stuck.forEach((rank, waits) -> last.addAll(edges(rank, waits)));
        last.removeAll(stuck.keySet());
        if (last.remove(ANY)) {
            // A rank that waits for all to arrive does not know which is missing.
            last.addAll(silentRanks());
        }
        if (last.isEmpty()) {
            return Optional.empty();
        }
        if (last.size() > 1) {
            return Optional.of(
                    ranks(last)
                            + " are waited for and wait for nobody: any of them may be the cause");
        }
        int first = last.first();
        ProcessEnd processEnd = processEnds.get(first);
        boolean late = ends.containsKey(first);
        String what =
                late
                        ? "was late: it came to wait only when others had given up"
                        : "hangs: it gave no sign of life"
                                + (processEnd == null ? "" : " and " + processEnd.words());
        return Optional.of(named(first, what));
    }

    private TreeSet<Integer> silentRanks() {
        TreeSet<Integer> silent = new TreeSet<>(processEnds.keySet());
        silent.removeAll(ends.keySet());
        return silent;
    }

    /** No report shows the cause. */
    private Optional<String> silent() {
        TreeSet<Integer> silent = silentRanks();
        if (silent.isEmpty()) {
            return Optional.empty();
        }
        List<String> words =
                silent.stream().map(rank -> processEnds.get(rank).words()).distinct().toList();
        return Optional.of(
                ranks(silent)
                        + (silent.size() == 1 ? " hangs: it " : " hang: each ")
                        + String.join(", or ", words));
    }

    private Optional<String> circle() {
        if (stuck.isEmpty() || stuck.keySet().stream().anyMatch(rank -> awaits(rank, ANY))) {
            return Optional.empty();
        }
        List<Integer> path = new ArrayList<>();
        int at = stuck.keySet().iterator().next();
        while (!path.contains(at)) {
            path.add(at);
            at = edges(at, stuck.get(at)).first();
        }
        List<Integer> cycle = path.subList(path.indexOf(at), path.size());
        String circle = cycle.stream().map(rank -> rank + " for ").collect(Collectors.joining());
        return Optional.of(
                "ranks wait for each other in a circle: %s%s: no rank is the cause by itself"
                        .formatted(circle, at));
    }

    private boolean awaits(int rank, int peer) {
        return edges(rank, stuck.get(rank)).contains(peer);
    }

    /**
     * A rank that waits for its own lane waits for the rank that the lane waits for. Waits for sums
     * of its own threads say nothing: another wait says what those threads wait for, or they wait
     * for nobody.
     */
    private static TreeSet<Integer> edges(int rank, List<Wait> waits) {
        TreeSet<Integer> edges = new TreeSet<>();
        waits.stream().map(Wait::from).filter(from -> from != rank).forEach(edges::add);
        if (edges.isEmpty()) {
            waits.stream()
                    .filter(wait -> !wait.what().equals(Awaited.OWN_THREAD))
                    .map(w -> w.source() < 0 ? w.from() : w.source())
                    .forEach(edges::add);
        }
        return edges;
    }

    private String named(int first, String what) {
        return "rank " + first + " " + what + waiters(first);
    }

    private String waiters(int first) {
        TreeSet<Integer> waiters = new TreeSet<>();
        Wait example = null;
        for (Map.Entry<Integer, List<Wait>> waiting : stuck.entrySet()) {
            int rank = waiting.getKey();
            if (rank != first && awaits(rank, first)) {
                waiters.add(rank);
                example = example == null ? waitFor(first, waiting.getValue()) : example;
            }
        }
        if (example == null) {
            return "";
        }
        return "; %s%s for it (%s)"
                .formatted(
                        ranks(waiters),
                        waiters.size() == 1 ? " waits" : " wait",
                        example.awaited());
    }

    /** Preferably a wait for the peer itself; otherwise one for a lane with the peer's rows. */
    private static Wait waitFor(int peer, List<Wait> waits) {
        return waits.stream()
                .filter(wait -> wait.from() == peer)
                .findFirst()
                .or(() -> waits.stream().filter(wait -> wait.source() == peer).findFirst())
                .orElseThrow();
    }

    private static String ranks(TreeSet<Integer> ranks) {
        if (ranks.size() == 1) {
            return "rank " + ranks.first();
        }
        String others =
                ranks.headSet(ranks.last()).stream()
                        .map(String::valueOf)
                        .collect(Collectors.joining(", "));
        return "ranks " + others + " and " + ranks.last();
    }
}
