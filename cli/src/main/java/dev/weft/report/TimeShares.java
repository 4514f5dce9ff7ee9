package dev.weft.report;

import dev.weft.report.CallSpans.RankSpans;
import dev.weft.report.CallSpans.TrackKind;
import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;

/**
 * Where each rank's time went, from the first rank's start until the last one was done: the mean
 * over its compute workers, or over its lanes if nothing is multiplied. The parts of a rank add up
 * to the whole call.
 */
public final class TimeShares {

    /** What a worker did or waited for. */
    public enum Activity {
        COMPUTE,
        TRANSFER,
        WAIT,
        START,
        OVERHEAD,
        DONE
    }

    /**
     * @param source the rank whose rows were waited for; -1 for none
     * @param name for people
     */
    public record Share(Activity kind, int source, String name, double ns) {

        boolean idle() {
            return kind == Activity.WAIT || kind == Activity.START || kind == Activity.DONE;
        }
    }

    /** One rank's shares: work first, then waits by source. */
    public record RankShares(int rank, List<Share> parts) {}

    private record Key(Activity activity, int source) {

        String name() {
            return switch (activity) {
                case COMPUTE -> "multiplying";
                case TRANSFER -> "moving chunks";
                case WAIT -> "waiting for rows of rank " + source;
                case START -> "starting";
                case OVERHEAD -> "between spans";
                case DONE -> "done, others still at work";
            };
        }
    }

    private final CallSpans call;
    private final SpanDependencies releases;

    private TimeShares(CallSpans call, SpanDependencies releases) {
        this.call = call;
        this.releases = releases;
    }

    /**
     * @param workers the kind of workers whose time counts; a rank without any has no shares
     */
    public static List<RankShares> of(
            CallSpans call, SpanDependencies releases, TrackKind workers) {
        TimeShares shares = new TimeShares(call, releases);
        return call.ranks().stream().map(rank -> shares.of(rank, workers)).toList();
    }

    private RankShares of(RankSpans rank, TrackKind kind) {
        if (rank.tracks().stream().noneMatch(one -> isOf(one, kind) && !one.spans().isEmpty())) {
            return new RankShares(rank.rank(), List.of());
        }
        TreeMap<Key, Double> sums =
                new TreeMap<>(Comparator.comparing(Key::activity).thenComparing(Key::source));
        int number = rank.firstSpan();
        int workers = 0;
        for (Timeline.Track track : rank.tracks()) {
            if (isOf(track, kind)) {
                workers++;
                add(track, number, sums);
            }
            number += track.spans().size();
        }
        List<Share> shares = new ArrayList<>();
        for (var sum : sums.entrySet()) {
            Key key = sum.getKey();
            shares.add(
                    new Share(key.activity(), key.source(), key.name(), sum.getValue() / workers));
        }
        return new RankShares(rank.rank(), List.copyOf(shares));
    }

    private static boolean isOf(Timeline.Track track, TrackKind kind) {
        return TrackKind.of(track.name()) == kind;
    }

    private void add(Timeline.Track track, int firstNumber, TreeMap<Key, Double> sums) {
        long free = 0;
        for (int i = 0; i < track.spans().size(); i++) {
            Timeline.Span span = track.spans().get(i);
            long from = Math.max(free, span.startNs());
            if (from > free) {
                add(sums, gap(firstNumber + i, free), from - free);
            }
            add(sums, key(span), Math.max(0, span.endNs() - from));
            free = Math.max(free, span.endNs());
        }
        add(sums, new Key(Activity.DONE, -1), call.endNs() - free);
    }

    private static void add(TreeMap<Key, Double> sums, Key key, long ns) {
        if (ns > 0) {
            sums.merge(key, (double) ns, Double::sum);
        }
    }

    private static Key key(Timeline.Span span) {
        return switch (span.kind()) {
            case WAIT -> new Key(Activity.WAIT, span.source());
            case COMPUTE -> new Key(Activity.COMPUTE, -1);
            case TRANSFER, STAGE -> new Key(Activity.TRANSFER, -1);
        };
    }

    /** Why a worker was idle before a span: its rows came late, or the call had just begun. */
    private Key gap(int number, long freeNs) {
        for (int transfer : releases.releasedBy(number)) {
            if (call.span(transfer).endNs() > freeNs) {
                return new Key(Activity.WAIT, call.span(number).source());
            }
        }
        return new Key(freeNs == 0 ? Activity.START : Activity.OVERHEAD, -1);
    }

    /** A sentence or two about the most idle rank and why; null if there is nothing to say. */
    public static String text(List<RankShares> ranks, long callNs) {
        Comparator<RankShares> byIdleTime = Comparator.comparingDouble(TimeShares::idleNs);
        RankShares worst = ranks.stream().max(byIdleTime).orElse(null);
        boolean explained = ranks.stream().anyMatch(rank -> rank.parts().size() > 1);
        if (worst == null || callNs == 0 || !explained) {
            return null;
        }
        double idle = idleNs(worst) / callNs;
        Share largest =
                worst.parts().stream()
                        .filter(Share::idle)
                        .max(Comparator.comparingDouble(Share::ns))
                        .orElse(null);
        double mean = ranks.stream().mapToDouble(TimeShares::idleNs).average().orElse(0) / callNs;
        if (largest == null) {
            return "No rank waited.";
        }
        return Text.text(
                "Ranks idled %.1f%% of the call on average. Rank %d idled most, %.1f%%"
                        + " of it, mainly %s (%s).",
                100 * mean, worst.rank(), 100 * idle, largest.name(), Text.time(largest.ns()));
    }

    static double idleNs(RankShares rank) {
        return rank.parts().stream().filter(Share::idle).mapToDouble(Share::ns).sum();
    }
}
