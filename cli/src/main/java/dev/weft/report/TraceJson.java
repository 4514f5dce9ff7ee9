package dev.weft.report;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.json.ElementPerLine;
import dev.weft.json.Json;
import dev.weft.json.JsonObject;
import dev.weft.json.RecordJson;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.io.IOException;
import java.io.Writer;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Writes a call as Chrome trace event JSON, which Perfetto and chrome://tracing open: a process for
 * each rank, a thread for each of its workers, a slice for each span, and an arrow from each
 * transfer to the products and the transfers that it released. Slices of a thread never overlap.
 */
public final class TraceJson {

    private static final String RELEASE = "release";

    private final CallSpans call;
    private final double flopsPerRow;
    private final Arrows arrows;
    private final JsonGenerator json;

    private TraceJson(CallSpans call, double flopsPerRow, JsonGenerator json) {
        this.call = call;
        this.flopsPerRow = flopsPerRow / call.columnParts();
        this.arrows = new Arrows(call);
        this.json = json;
    }

    /**
     * Writes the whole trace and leaves the writer open.
     *
     * @param flopsPerRow the operations of a row of one rank's product; 0 if nothing is multiplied
     * @param about what the trace shows, displayed with it
     */
    public static void write(
            CallSpans call, double flopsPerRow, Map<String, String> about, Writer writer)
            throws IOException {
        try (JsonGenerator json = Json.generator(writer, new ElementPerLine(":", "\n]"))) {
            new TraceJson(call, flopsPerRow, json).write(about);
        }
        writer.write('\n');
    }

    private void write(Map<String, String> about) throws IOException {
        json.writeStartObject();
        json.writeStringField("displayTimeUnit", "ms");
        json.writeObjectFieldStart("otherData");
        for (Map.Entry<String, String> entry : about.entrySet()) {
            json.writeStringField(entry.getKey(), entry.getValue());
        }
        json.writeEndObject();
        json.writeArrayFieldStart("traceEvents");
        for (CallSpans.RankSpans rank : call.ranks()) {
            rank(rank);
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private void rank(CallSpans.RankSpans rank) throws IOException {
        String name = "rank " + rank.rank() + " (group " + rank.group() + ")";
        describe("process", "name", name, rank.rank(), 0);
        describe("process", "sort_index", rank.rank(), rank.rank(), 0);
        int number = rank.firstSpan();
        for (int thread = 0; thread < rank.tracks().size(); thread++) {
            Timeline.Track track = rank.tracks().get(thread);
            describe("thread", "name", track.name(), rank.rank(), thread);
            describe("thread", "sort_index", thread, rank.rank(), thread);
            track(track.spans(), number, rank.rank(), thread);
            number += track.spans().size();
        }
    }

    private void describe(String what, String field, Object value, int process, int thread)
            throws IOException {
        begin("M", what + "_" + field, process, thread);
        json.writeObjectFieldStart("args");
        RecordJson.field(json, field, value);
        json.writeEndObject();
        json.writeEndObject();
    }

    /** Arrows follow the slices where they end and begin: viewers bind them to the latest one. */
    private void track(List<Timeline.Span> spans, int firstNumber, int process, int thread)
            throws IOException {
        for (int i = 0; i < spans.size(); i++) {
            int number = firstNumber + i;
            Timeline.Span span = spans.get(i);
            boolean last = i == spans.size() - 1;
            slice(span, last ? Long.MAX_VALUE : spans.get(i + 1).startNs(), process, thread);
            for (Arrows.Arrow arrow : arrows.endingAt(number)) {
                arrow("f", arrow.id(), span.startNs(), process, thread);
            }
            for (Arrows.Arrow arrow : arrows.beginningAt(number)) {
                arrow("s", arrow.id(), arrow.beginNs(), process, thread);
            }
        }
    }

    private void slice(Timeline.Span span, long nextStartNs, int process, int thread)
            throws IOException {
        begin("X", title(span, process), process, thread);
        json.writeStringField("cat", JsonObject.label(span.kind()));
        us("ts", span.startNs());
        // Viewers that read microseconds as doubles may be a nanosecond off, and drop a slice that
        // seems to begin before the last one has ended.
        us("dur", Math.max(0, Math.min(span.endNs(), nextStartNs - 1) - span.startNs()));
        json.writeObjectFieldStart("args");
        json.writeNumberField("source", span.source());
        json.writeNumberField("peer", span.peer());
        if (span.to() >= 0) {
            json.writeNumberField("from", span.to() == process ? span.peer() : process);
            json.writeNumberField("to", span.to());
        }
        if (span.chunk() >= 0) {
            json.writeNumberField("chunk", span.chunk());
        }
        json.writeNumberField("firstRow", span.firstRow());
        json.writeNumberField("rows", span.rows());
        if (span.kind() == Kind.TRANSFER) {
            json.writeNumberField("bytes", span.bytes());
            rate("gbPerSecond", span.bytes(), span);
        } else if (span.kind() == Kind.COMPUTE) {
            rate("gflops", flopsPerRow * span.rows(), span);
        }
        if (span.estimated()) {
            json.writeBooleanField("estimated", true);
        }
        json.writeEndObject();
        json.writeEndObject();
    }

    private static String title(Timeline.Span span, int rank) {
        return switch (span.kind()) {
            case STAGE -> "stage " + span.rows() + " rows";
            case WAIT -> "wait for rank " + (span.peer() == rank ? span.source() : span.peer());
            case TRANSFER ->
                    span.chunk() < 0
                            ? "gather " + span.rows() + " rows"
                            : "rank " + span.source() + " chunk " + span.chunk();
            case COMPUTE -> {
                long lastRow = span.firstRow() + span.rows() - 1;
                yield "rows " + span.firstRow() + "-" + lastRow + " of rank " + span.source();
            }
        };
    }

    private void arrow(String phase, int id, long ns, int process, int thread) throws IOException {
        begin(phase, RELEASE, process, thread);
        json.writeStringField("cat", RELEASE);
        json.writeNumberField("id", id);
        us("ts", ns);
        if (phase.equals("f")) {
            // Bind it to the enclosing slice, not to the next one that begins.
            json.writeStringField("bp", "e");
        }
        json.writeEndObject();
    }

    private void begin(String phase, String name, int process, int thread) throws IOException {
        json.writeStartObject();
        json.writeStringField("ph", phase);
        json.writeStringField("name", name);
        json.writeNumberField("pid", process);
        json.writeNumberField("tid", thread);
    }

    private void us(String field, long ns) throws IOException {
        json.writeNumberField(field, BigDecimal.valueOf(ns, 3));
    }

    /** Writes a rate per nanosecond, unless there is nothing to show. */
    private void rate(String field, double amount, Timeline.Span span) throws IOException {
        long ns = span.endNs() - span.startNs();
        if (amount > 0 && ns > 0) {
            json.writeNumberField(field, Math.round(1e3 * amount / ns) / 1e3);
        }
    }

    /**
     * The arrows of a trace, from transfers to what they released. Arrows that seem to point back
     * in time, because the clocks of hosts differ, are left out.
     */
    private static final class Arrows {

        /** Makes an arrow begin inside its slice, whatever a viewer's arithmetic loses. */
        private static final long HAIR_NS = 4;

        /**
         * @param from number of the transfer
         * @param to number of the span that it released
         * @param beginNs within the transfer, and not after the start of the other span
         */
        record Arrow(int id, int from, int to, long beginNs) {}

        private final Map<Integer, List<Arrow>> byEnd;
        private final Map<Integer, List<Arrow>> byBeginning;

        Arrows(CallSpans call) {
            SpanDependencies releases = new SpanDependencies(call);
            // Rows of one call of several say nothing about those of the next.
            List<Arrow> all = new ArrayList<>();
            int size = call.calls().isEmpty() ? call.size() : 0;
            for (int number = 0; number < size; number++) {
                long endNs = call.span(number).startNs();
                for (int transfer : releases.releasedBy(number)) {
                    Timeline.Span span = call.span(transfer);
                    if (span.startNs() <= endNs) {
                        long inside = Math.min(span.endNs(), endNs) - HAIR_NS;
                        long beginNs = Math.max(span.startNs(), inside);
                        all.add(new Arrow(all.size(), transfer, number, beginNs));
                    }
                }
            }
            byEnd = all.stream().collect(Collectors.groupingBy(Arrow::to));
            byBeginning = all.stream().collect(Collectors.groupingBy(Arrow::from));
        }

        List<Arrow> endingAt(int span) {
            return byEnd.getOrDefault(span, List.of());
        }

        List<Arrow> beginningAt(int span) {
            return byBeginning.getOrDefault(span, List.of());
        }
    }
}
