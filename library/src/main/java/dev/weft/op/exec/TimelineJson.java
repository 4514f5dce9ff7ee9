package dev.weft.op.exec;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.PrettyPrinter;
import dev.weft.json.ElementPerLine;
import dev.weft.json.JsonObject;
import dev.weft.op.Timeline;
import java.io.IOException;
import java.util.List;

/** Writes timelines for records. */
public record TimelineJson(JsonGenerator json) {

    /** Writes the fields of a timeline into the open object. */
    public static void write(JsonGenerator json, Timeline timeline) throws IOException {
        json.writeNumberField("startNs", timeline.startNs());
        json.writeNumberField("elapsedNs", timeline.elapsedNs());
        json.writeArrayFieldStart("tracks");
        for (Timeline.Track track : timeline.tracks()) {
            json.writeStartObject();
            json.writeStringField("name", track.name());
            new TimelineJson(json).spans(track.spans());
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    /** One line for each, however the rest is indented: there may be very many. */
    private void spans(List<Timeline.Span> spans) throws IOException {
        PrettyPrinter indented = json.getPrettyPrinter();
        json.writeFieldName("spans");
        if (indented != null) {
            json.setPrettyPrinter(new ElementPerLine(" : ", "]"));
        }
        json.writeStartArray();
        for (Timeline.Span span : spans) {
            span(span);
        }
        json.writeEndArray();
        json.setPrettyPrinter(indented);
    }

    private void span(Timeline.Span span) throws IOException {
        json.writeStartObject();
        json.writeStringField("kind", JsonObject.label(span.kind()));
        json.writeNumberField("source", span.source());
        json.writeNumberField("peer", span.peer());
        if (span.to() >= 0) {
            json.writeNumberField("to", span.to());
        }
        if (span.chunk() >= 0) {
            json.writeNumberField("chunk", span.chunk());
        }
        json.writeNumberField("firstRow", span.firstRow());
        json.writeNumberField("rows", span.rows());
        if (span.to() >= 0) {
            json.writeNumberField("bytes", span.bytes());
        }
        json.writeNumberField("startNs", span.startNs());
        json.writeNumberField("endNs", span.endNs());
        json.writeEndObject();
    }
}
