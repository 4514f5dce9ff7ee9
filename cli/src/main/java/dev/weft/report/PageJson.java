package dev.weft.report;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.SerializableString;
import com.fasterxml.jackson.core.io.CharacterEscapes;
import com.fasterxml.jackson.core.io.SerializedString;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import dev.weft.json.Json;
import dev.weft.json.RecordJson;
import dev.weft.trace.Timeline;
import java.io.IOException;
import java.io.Writer;
import java.util.List;

/** Writes what a page shows as the JSON that its scripts read; nothing else reads it. */
public final class PageJson {

    private final JsonGenerator json;

    private PageJson(JsonGenerator json) {
        this.json = json;
    }

    private record Track(String name, CallSpans.TrackKind kind, int spans) {

        static Track of(Timeline.Track track) {
            CallSpans.TrackKind kind = CallSpans.TrackKind.of(track.name());
            return new Track(track.name(), kind, track.spans().size());
        }
    }

    private record Rank(int rank, int group, long startNs, long endNs, List<Track> tracks) {

        static Rank of(CallSpans.RankSpans rank) {
            List<Track> tracks = rank.tracks().stream().map(Track::of).toList();
            return new Rank(rank.rank(), rank.group(), rank.startNs(), rank.endNs(), tracks);
        }
    }

    /** No text may end the element that contains the JSON. */
    private static final class NoMarkup extends CharacterEscapes {

        private static final long serialVersionUID = 1;

        private final int[] ascii = standardAsciiEscapesForJSON();

        NoMarkup() {
            ascii['<'] = ESCAPE_STANDARD;
            ascii['>'] = ESCAPE_STANDARD;
            ascii['&'] = ESCAPE_STANDARD;
        }

        @Override
        public int[] getEscapeCodesForAscii() {
            return ascii.clone();
        }

        @Override
        public SerializableString getEscapeSequence(int character) {
            return new SerializedString(text("\\u%04x", character));
        }
    }

    public static void write(PageData page, String weftVersion, Writer writer) throws IOException {
        try (JsonGenerator json = Json.generator(writer)) {
            // Also escapes lone surrogates, which a JSON text can hold, but a file cannot.
            json.enable(JsonWriteFeature.ESCAPE_NON_ASCII.mappedFeature());
            json.setCharacterEscapes(new NoMarkup());
            new PageJson(json).page(page, weftVersion);
        }
    }

    private void page(PageData page, String weftVersion) throws IOException {
        json.writeStartObject();
        json.writeStringField("kind", page.kind());
        json.writeStringField("title", page.title());
        json.writeStringField("weft", weftVersion);
        json.writeBooleanField("live", page.progress() != null);
        RecordJson.field(json, "progress", page.progress());
        if (page.comparison() != null) {
            RecordJson.field(json, "comparison", page.comparison());
        }
        json.writeArrayFieldStart("runs");
        for (ShownRun run : page.runs()) {
            // A comparison shows no timelines, and they would make it large.
            run(run, page.runs().size() == 1);
        }
        json.writeEndArray();
        if (page.sweep() != null) {
            json.writeObjectFieldStart("sweep");
            page.sweep().write(json);
            json.writeEndObject();
        }
        json.writeEndObject();
    }

    private void run(ShownRun run, boolean withTimeline) throws IOException {
        json.writeStartObject();
        json.writeStringField("name", run.name());
        json.writeStringField("subtitle", run.subtitle());
        json.writeBooleanField("simulated", run.simulated());
        RecordJson.field(json, "verdict", run.verdict());
        json.writeStringField("conclusion", run.conclusion());
        RecordJson.field(json, "facts", run.facts());
        RecordJson.field(json, "details", run.details());
        RecordJson.field(json, "views", run.views());
        if (run.call() == null || run.call().size() == 0) {
            json.writeNullField("timeline");
        } else if (withTimeline) {
            timeline(run);
        }
        ShownRun.Analysis analysis = run.analysis();
        if (analysis != null) {
            RecordJson.field(json, "idle", analysis.shares());
            json.writeStringField("idleText", analysis.idleText());
            Links links = analysis.links();
            RecordJson.field(json, "links", links.links().isEmpty() ? null : links);
            RecordJson.field(json, "advice", analysis.advice());
        }
        json.writeEndObject();
    }

    private void timeline(ShownRun run) throws IOException {
        CallSpans call = run.call();
        SpanColumns columns = new SpanColumns(call);
        json.writeObjectFieldStart("timeline");
        json.writeNumberField("endNs", call.endNs());
        json.writeNumberField("unitNs", columns.unitNs());
        json.writeNumberField("spanCount", call.size());
        RecordJson.field(json, "bytesPerRow", run.bytesPerRow());
        RecordJson.field(json, "flopsPerRow", run.flopsPerRow() / run.call().columnParts());
        RecordJson.field(json, "ranks", call.ranks().stream().map(Rank::of).toList());
        RecordJson.field(json, "calls", call.calls());
        columns.write(json);
        RecordJson.field(json, "critical", run.analysis().critical());
        json.writeEndObject();
    }
}
