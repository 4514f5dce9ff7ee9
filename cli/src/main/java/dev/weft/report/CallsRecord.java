package dev.weft.report;

import static dev.weft.report.Text.text;

import dev.weft.json.JsonField;
import dev.weft.process.SafeText;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Span;
import dev.weft.trace.Timeline.Track;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * What one rank of a program did in several calls, as {@link dev.weft.trace.CallLog} wrote it.
 *
 * @param calls at least one
 */
public record CallsRecord(
        int rank,
        @JsonField(least = 1, most = RunRecord.MAX_RANKS) int ranks,
        @JsonField(some = true) List<Call> calls) {

    /** A call, or the program's own work. */
    public record Call(String name, long startNs, long elapsedNs, List<Track> tracks) {

        private long endNs() {
            return startNs + elapsedNs;
        }
    }

    public CallsRecord {
        calls = List.copyOf(calls);
    }

    /**
     * Everything that the ranks did, in one picture.
     *
     * @param files the files of the records
     * @throws IllegalArgumentException if the records are not of the same calls
     */
    public static ShownRun shown(List<CallsRecord> records, List<String> files) {
        CallsRecord first = records.getFirst();
        Set<Integer> seen = new HashSet<>();
        for (CallsRecord record : records) {
            record.requireLike(first);
            if (!seen.add(record.rank)) {
                throw new IllegalArgumentException(
                        "two records of rank %d: expected one of each rank".formatted(record.rank));
            }
        }
        List<CallsRecord> inOrder =
                records.stream().sorted(Comparator.comparingInt(CallsRecord::rank)).toList();
        List<RunRecord.Rank> ranks =
                inOrder.stream()
                        .map(record -> new RunRecord.Rank(record.rank, 0, 0, 0, record.joined()))
                        .toList();
        List<CallSpans.NamedCall> calls = new ArrayList<>();
        for (int i = 0; i < first.calls.size(); i++) {
            calls.add(named(inOrder, i));
        }
        CallSpans spans = CallSpans.of(ranks, first.ranks, calls);
        return new ShownRun(
                text("%d calls on %d ranks", calls.size(), first.ranks),
                String.join(", ", files),
                false,
                null,
                null,
                List.of(),
                List.of(),
                List.of(),
                spans,
                0,
                0,
                new ShownRun.Analysis(
                        List.of(),
                        List.of(),
                        "Calls one after the other, and the program's own work between them.",
                        new Links(first.ranks, false, List.of()),
                        List.of()),
                null);
    }

    private void requireLike(CallsRecord other) {
        if (ranks != other.ranks || calls.size() != other.calls.size()) {
            throw new IllegalArgumentException(
                    "rank %d has %d calls on %d ranks, rank %d has %d on %d: expected the same"
                            .formatted(
                                    rank,
                                    calls.size(),
                                    ranks,
                                    other.rank,
                                    other.calls.size(),
                                    other.ranks));
        }
        for (int i = 0; i < calls.size(); i++) {
            if (!calls.get(i).name().equals(other.calls.get(i).name())) {
                throw new IllegalArgumentException(
                        "call number %d is %s on rank %d and %s on rank %d: expected the same"
                                .formatted(
                                        i,
                                        SafeText.excerpt(calls.get(i).name()),
                                        rank,
                                        SafeText.excerpt(other.calls.get(i).name()),
                                        other.rank));
            }
        }
    }

    private static CallSpans.NamedCall named(List<CallsRecord> records, int number) {
        List<Call> all = records.stream().map(record -> record.calls.get(number)).toList();
        return new CallSpans.NamedCall(
                all.getFirst().name(),
                all.stream().mapToLong(Call::startNs).min().orElseThrow(),
                all.stream().mapToLong(Call::endNs).max().orElseThrow(),
                all.stream().map(Call::startNs).toList());
    }

    /** All calls as if they were one. */
    private Timeline joined() {
        long startNs = Collections.min(calls, Comparator.comparingLong(Call::startNs)).startNs();
        long endNs = Collections.max(calls, Comparator.comparingLong(Call::endNs)).endNs();
        List<Track> tracks = new ArrayList<>();
        for (Call call : calls) {
            for (Track track : call.tracks()) {
                add(track, call.startNs() - startNs, tracks);
            }
        }
        return new Timeline(rank, startNs, endNs - startNs, tracks);
    }

    /** Adds to a track of that name that is free by then: calls may overlap. */
    private static void add(Track track, long shiftNs, List<Track> tracks) {
        if (track.spans().isEmpty()) {
            return;
        }
        long from = track.spans().getFirst().startNs() + shiftNs;
        int at = 0;
        while (at < tracks.size()
                && !(tracks.get(at).name().equals(track.name())
                        && tracks.get(at).spans().getLast().endNs() <= from)) {
            at++;
        }
        if (at == tracks.size()) {
            tracks.add(new Track(track.name(), new ArrayList<>()));
        }
        for (Span span : track.spans()) {
            tracks.get(at).spans().add(CallSpans.inWorld(span, shiftNs, member -> member));
        }
    }
}
