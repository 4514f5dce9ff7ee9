package dev.weft.report;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.SerializableString;
import com.fasterxml.jackson.core.io.CharacterEscapes;
import com.fasterxml.jackson.core.io.SerializedString;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import dev.weft.json.Json;
import java.io.IOException;
import java.io.Writer;
import java.util.Locale;

/** Writes what a page shows as the JSON that its scripts read; nothing else reads it. */
public final class PageJson {

    private final JsonGenerator json;

    private PageJson(JsonGenerator json) {
        this.json = json;
    }

    /** No text may end the element that the JSON stands in. */
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
            // Also for the halves of characters that a JSON text can hold, but no file.
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
        json.writeArrayFieldStart("runs");
        for (ShownRun run : page.runs()) {
            // The timelines of a comparison would make it large, and it shows none.
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
        RecordJson.field(json, "facts", run.facts());
        RecordJson.field(json, "details", run.details());
        views(run);
        if (run.call() == null || run.call().size() == 0) {
            json.writeNullField("timeline");
        } else if (withTimeline) {
            timeline(run);
        }
        if (run.analysis() != null) {
            analysis(run.analysis());
        }
        json.writeEndObject();
    }

    private void views(ShownRun run) throws IOException {
        json.writeArrayFieldStart("views");
        for (ShownRun.View view : run.views()) {
            json.writeStartObject();
            json.writeStringField("key", view.key());
            json.writeStringField("label", view.label());
            Json.numberOrNull(json, "medianUs", view.samples().median());
            Json.numberOrNull(json, "spreadUs", view.samples().spread());
            RecordJson.field(json, "samplesUs", view.samples().us());
            if (!view.parts().isEmpty()) {
                RecordJson.field(json, "parts", view.parts());
            }
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    private void timeline(ShownRun run) throws IOException {
        CallSpans call = run.call();
        SpanColumns columns = new SpanColumns(call);
        json.writeObjectFieldStart("timeline");
        json.writeNumberField("endNs", call.endNs());
        json.writeNumberField("unitNs", columns.unitNs());
        json.writeNumberField("spanCount", call.size());
        Json.numberOrNull(json, "bytesPerRow", run.bytesPerRow());
        Json.numberOrNull(json, "flopsPerRow", run.flopsPerRow());
        json.writeArrayFieldStart("ranks");
        for (CallSpans.RankSpans rank : call.ranks()) {
            rank(rank);
        }
        json.writeEndArray();
        columns.write(json);
        RecordJson.field(json, "critical", run.analysis().critical());
        json.writeEndObject();
    }

    private void rank(CallSpans.RankSpans rank) throws IOException {
        json.writeStartObject();
        json.writeNumberField("rank", rank.rank());
        json.writeNumberField("group", rank.group());
        json.writeNumberField("startNs", rank.startNs());
        json.writeNumberField("endNs", rank.endNs());
        json.writeArrayFieldStart("tracks");
        for (var track : rank.tracks()) {
            CallSpans.TrackKind kind = CallSpans.TrackKind.of(track.name());
            json.writeStartObject();
            json.writeStringField("name", track.name());
            json.writeStringField("kind", kind.name().toLowerCase(Locale.ROOT));
            json.writeNumberField("spans", track.spans().size());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private void analysis(ShownRun.Analysis analysis) throws IOException {
        json.writeArrayFieldStart("idle");
        for (TimeShares.RankShares rank : analysis.shares()) {
            json.writeStartObject();
            json.writeNumberField("rank", rank.rank());
            json.writeArrayFieldStart("parts");
            for (TimeShares.Share share : rank.shares()) {
                share(share);
            }
            json.writeEndArray();
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeStringField("idleText", analysis.idleText());
        links(analysis.links());
        RecordJson.field(json, "advice", analysis.advice());
    }

    private void share(TimeShares.Share share) throws IOException {
        json.writeStartObject();
        json.writeStringField("kind", share.part().name().toLowerCase(Locale.ROOT));
        if (share.part() == TimeShares.Part.WAIT) {
            json.writeNumberField("source", share.source());
        }
        json.writeStringField("name", share.name());
        json.writeNumberField("ns", share.ns());
        json.writeEndObject();
    }

    private void links(Links links) throws IOException {
        if (links.links().isEmpty()) {
            json.writeNullField("links");
            return;
        }
        json.writeObjectFieldStart("links");
        json.writeNumberField("ranks", links.ranks());
        json.writeBooleanField("inPlace", links.inPlace());
        RecordJson.field(json, "cells", links.links());
        json.writeEndObject();
    }
}
