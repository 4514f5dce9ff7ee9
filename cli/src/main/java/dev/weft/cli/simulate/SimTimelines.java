package dev.weft.cli.simulate;

import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.report.RunRecord;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.sim.Scenario;
import dev.weft.sim.Simulator;
import dev.weft.sim.SpanSink;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Keeps what the first simulated ranks do, as timelines like those of executed calls. */
public final class SimTimelines implements SpanSink {

    private static final String COMPUTE = "compute";

    /** Lanes before compute workers, each by number. */
    private static final Comparator<String> TRACK_ORDER =
            Comparator.comparing((String name) -> name.startsWith(COMPUTE))
                    .thenComparing(String::length)
                    .thenComparing(Comparator.naturalOrder());

    /** With more ranks than this, records have only the first one's spans. */
    static final int MOST_RANKS_WITH_SPANS = 64;

    private final Chunks chunks;
    private final List<Map<String, List<Timeline.Span>>> tracksOfRank = new ArrayList<>();
    private final long[] endNs;

    /**
     * @param chunks of the shards whose rows spans are about
     * @param ranks how many ranks' spans are kept, from rank 0 on
     */
    SimTimelines(Chunks chunks, int ranks) {
        this.chunks = chunks;
        endNs = new long[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            tracksOfRank.add(new TreeMap<>(TRACK_ORDER));
        }
    }

    public static SimTimelines of(PlanSearch search, Candidate chosen) {
        int ranks = search.problem().shards().ranks();
        Scenario scenario = search.scenario(chosen);
        boolean few = ranks <= MOST_RANKS_WITH_SPANS;
        SimTimelines timelines = new SimTimelines(search.chunks(chosen), few ? ranks : 1);
        if (few) {
            Simulator.runEveryRank(search.machine(), scenario, View.PIPELINED, timelines);
        } else {
            Simulator.run(search.machine(), scenario, View.PIPELINED, timelines);
        }
        return timelines;
    }

    @Override
    public void span(int rank, String track, Span span) {
        if (rank >= endNs.length) {
            return;
        }
        long end = Math.round(span.endNs());
        endNs[rank] = Math.max(endNs[rank], end);
        int source = sourceOf(span.firstRow());
        long firstRow = span.firstRow() - chunks.shards().firstRow(source);
        tracksOfRank
                .get(rank)
                .computeIfAbsent(track, name -> new ArrayList<>())
                .add(
                        new Timeline.Span(
                                Timeline.Kind.valueOf(span.kind().name()),
                                source,
                                span.peer(),
                                span.to(),
                                track.startsWith(COMPUTE)
                                        ? -1
                                        : chunk(source, firstRow, span.firstCol()),
                                firstRow,
                                span.rows(),
                                span.bytes(),
                                Math.round(span.startNs()),
                                end));
    }

    /** The rank whose shard has a row. */
    private int sourceOf(long row) {
        Shards shards = chunks.shards();
        int source = 0;
        while (row >= shards.firstRow(source) + shards.rows(source)) {
            source++;
        }
        return source;
    }

    private int chunk(int source, long row, long col) {
        long rowChunk = row / chunks.chunkRows(source);
        return Math.toIntExact(rowChunk * chunks.colChunks() + col / chunks.chunkCols());
    }

    /** What one rank did; all ranks start at once. */
    public Timeline of(int rank) {
        List<Timeline.Track> tracks = new ArrayList<>();
        tracksOfRank
                .get(rank)
                .forEach(
                        (name, spans) -> {
                            spans.sort(Comparator.comparingLong(Timeline.Span::startNs));
                            tracks.add(new Timeline.Track(name, List.copyOf(spans)));
                        });
        return new Timeline(rank, 0, endNs[rank], tracks);
    }

    /** The ranks for a record. */
    public List<RunRecord.Rank> ranks() {
        List<RunRecord.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < endNs.length; rank++) {
            ranks.add(
                    new RunRecord.Rank(
                            rank, 0, chunks.shards().rows(rank), chunks.chunkRows(rank), of(rank)));
        }
        return ranks;
    }
}
