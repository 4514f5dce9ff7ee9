package dev.weft.report;

import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntBinaryOperator;
import java.util.function.IntUnaryOperator;

/**
 * What all ranks did in one call, on one clock and with the world's rank numbers: times are
 * nanoseconds since the first rank's start. Spans are numbered by rank, track and time. Immutable.
 */
public final class CallSpans {

    /** One rank; its spans start at number {@code firstSpan}. */
    public record RankSpans(
            int rank,
            int group,
            long startNs,
            long endNs,
            int firstSpan,
            List<Timeline.Track> tracks) {}

    /**
     * One of a program's calls, from the first rank's start to the last rank's end.
     *
     * @param startsNs on each rank
     */
    public record NamedCall(String name, long startNs, long endNs, List<Long> startsNs) {}

    /** Rows of a source that a rank multiplies. */
    private record Rows(int rank, int source) {}

    /** A span with its rank and the kind of its track. */
    private record Placed(int rank, TrackKind track, Timeline.Span span) {}

    /** What the worker of a track does. */
    public enum TrackKind {
        CALLER,
        LANE,
        COMPUTE;

        /** The kind of a track, by the name that executors, the simulator and GPU ranks give it. */
        public static TrackKind of(String track) {
            if (track.startsWith("caller")) {
                return CALLER;
            }
            return track.startsWith("compute") ? COMPUTE : LANE;
        }
    }

    private final List<RankSpans> ranks = new ArrayList<>();
    private final List<Placed> spans = new ArrayList<>();
    private final List<NamedCall> calls = new ArrayList<>();
    private final boolean summed;
    private final int worldSize;
    private final int members;
    private long endNs;

    private CallSpans(boolean summed, int worldSize, int members) {
        this.summed = summed;
        this.worldSize = worldSize;
        this.members = members;
    }

    /** The pipelined call of a run that is nearest to the median. */
    public static CallSpans of(RunRecord record) {
        RunRecord.Problem problem = record.problem();
        List<List<Integer>> lists = problem.lists();
        int groupSize = problem.largestGroup();
        // Peers that are only host memory do nothing that could be shown.
        boolean alone = "host".equals(record.execution().peers());
        return of(
                record.ranks(),
                problem.isSummed(),
                problem.ranks(),
                alone ? record.ranks().size() : problem.members(),
                lists.isEmpty()
                        ? (group, member) -> group * groupSize + member
                        : (group, member) -> lists.get(group).get(member));
    }

    /**
     * @param worldSize ranks of the world, of which {@code ranks} may be some
     * @param groupSize ranks of one group: timelines have the group's numbers
     */
    public static CallSpans of(List<RunRecord.Rank> ranks, int worldSize, int groupSize) {
        return of(
                ranks, false, worldSize, worldSize, (group, member) -> group * groupSize + member);
    }

    /**
     * Several calls of a program, one after the other.
     *
     * @param calls their times on the ranks' clock
     */
    static CallSpans of(List<RunRecord.Rank> ranks, int worldSize, List<NamedCall> calls) {
        CallSpans spans = of(ranks, worldSize, worldSize);
        long originNs = originNs(ranks);
        for (NamedCall call : calls) {
            spans.calls.add(
                    new NamedCall(
                            call.name(),
                            call.startNs() - originNs,
                            call.endNs() - originNs,
                            call.startsNs().stream().map(start -> start - originNs).toList()));
        }
        return spans;
    }

    private static long originNs(List<RunRecord.Rank> ranks) {
        return ranks.stream().mapToLong(rank -> rank.timeline().startNs()).min().orElse(0);
    }

    /**
     * @param summed whether products are summed
     * @param members ranks of the world that take part
     * @param worldRank the rank of a group's member
     */
    static CallSpans of(
            List<RunRecord.Rank> ranks,
            boolean summed,
            int worldSize,
            int members,
            IntBinaryOperator worldRank) {
        CallSpans call = new CallSpans(summed, worldSize, members);
        long originNs = originNs(ranks);
        for (RunRecord.Rank rank : ranks) {
            call.add(rank, originNs, member -> worldRank.applyAsInt(rank.group(), member));
        }
        return call;
    }

    private void add(RunRecord.Rank rank, long originNs, IntUnaryOperator worldRank) {
        long startNs = rank.timeline().startNs() - originNs;
        int firstSpan = spans.size();
        List<Timeline.Track> tracks = new ArrayList<>();
        for (Timeline.Track track : rank.timeline().tracks()) {
            List<Timeline.Span> own =
                    track.spans().stream().map(span -> inWorld(span, startNs, worldRank)).toList();
            TrackKind kind = TrackKind.of(track.name());
            own.forEach(span -> spans.add(new Placed(rank.rank(), kind, span)));
            tracks.add(new Timeline.Track(track.name(), own));
        }
        long end = startNs + rank.timeline().elapsedNs();
        for (int i = firstSpan; i < spans.size(); i++) {
            end = Math.max(end, span(i).endNs());
        }
        endNs = Math.max(endNs, end);
        ranks.add(
                new RankSpans(
                        rank.rank(), rank.group(), startNs, end, firstSpan, List.copyOf(tracks)));
    }

    static Timeline.Span inWorld(Timeline.Span span, long startNs, IntUnaryOperator worldRank) {
        return new Timeline.Span(
                span.kind(),
                worldRank.applyAsInt(span.source()),
                worldRank.applyAsInt(span.peer()),
                span.to() < 0 ? -1 : worldRank.applyAsInt(span.to()),
                span.chunk(),
                span.firstRow(),
                span.rows(),
                span.bytes(),
                span.startNs() + startNs,
                span.endNs() + startNs,
                span.estimated());
    }

    /** The ranks whose spans were kept. */
    public List<RankSpans> ranks() {
        return List.copyOf(ranks);
    }

    /** The calls of a program; empty if it is a single call. */
    List<NamedCall> calls() {
        return List.copyOf(calls);
    }

    /** Whether transfers move sums of products, so that they wait for products too. */
    boolean summed() {
        return summed;
    }

    /** Ranks of the world. */
    public int worldSize() {
        return worldSize;
    }

    /** Ranks of the world that take part. */
    public int members() {
        return members;
    }

    /**
     * Whether all ranks that take part reported everything they did. For very many simulated ranks
     * only the first is kept, and a library's own gather does not say which rows came from where.
     */
    boolean isWhole() {
        return ranks.size() == members
                && spans.stream()
                        .map(Placed::span)
                        .noneMatch(span -> span.kind() == Timeline.Kind.TRANSFER && span.to() < 0);
    }

    /** How often every row is multiplied, each time with another part of the columns. */
    double columnParts() {
        long multiplied = 0;
        Map<Rows, Long> ends = new HashMap<>();
        for (Placed placed : spans) {
            Timeline.Span span = placed.span();
            if (span.kind() == Timeline.Kind.COMPUTE) {
                multiplied += span.rows();
                Rows source = new Rows(placed.rank(), span.source());
                ends.merge(source, span.firstRow() + span.rows(), Math::max);
            }
        }
        long rows = ends.values().stream().mapToLong(end -> end).sum();
        return rows == 0 ? 1 : (double) multiplied / rows;
    }

    public int size() {
        return spans.size();
    }

    public Timeline.Span span(int number) {
        return spans.get(number).span();
    }

    int rankOf(int number) {
        return spans.get(number).rank();
    }

    boolean isInLane(int number) {
        return spans.get(number).track() == TrackKind.LANE;
    }

    /** The rank whose rows a transfer moves. */
    int senderOf(int number) {
        Timeline.Span span = span(number);
        return span.to() == rankOf(number) ? span.peer() : rankOf(number);
    }

    /** When the last rank was done. */
    public long endNs() {
        return endNs;
    }
}
