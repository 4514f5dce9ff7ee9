package dev.weft.report;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.trace.Timeline;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import java.util.function.ToLongFunction;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/**
 * A call's spans for a page: one column of little-endian 32-bit numbers for each property, deflated
 * and in base64. A million spans then take a few megabytes, instead of a hundred as JSON.
 */
final class SpanColumns {

    private final CallSpans call;

    /** Nanoseconds of one unit of time, so that 31 bits hold the whole call. */
    private final long unitNs;

    SpanColumns(CallSpans call) {
        this.call = call;
        this.unitNs = Math.max(1, Math.ceilDiv(call.endNs(), Integer.MAX_VALUE));
    }

    long unitNs() {
        return unitNs;
    }

    /** Added to the number of a span's kind if its times are estimated. */
    private static final int ESTIMATED = 4;

    void write(JsonGenerator json) throws IOException {
        json.writeObjectFieldStart("columns");
        column(json, "gap", gaps());
        column(json, "length", values(span -> units(span.endNs()) - units(span.startNs())));
        column(json, "kind", values(SpanColumns::kind));
        column(json, "source", values(Timeline.Span::source));
        column(json, "peer", values(Timeline.Span::peer));
        column(json, "to", values(Timeline.Span::to));
        column(json, "chunk", values(Timeline.Span::chunk));
        column(json, "firstRow", values(Timeline.Span::firstRow));
        column(json, "rows", values(Timeline.Span::rows));
        column(json, "bytes", values(Timeline.Span::bytes));
        json.writeEndObject();
    }

    private static long kind(Timeline.Span span) {
        return (long) span.kind().ordinal() + (span.estimated() ? ESTIMATED : 0);
    }

    private long units(long ns) {
        return ns / unitNs;
    }

    private ByteBuffer gaps() {
        ByteBuffer column = column();
        for (CallSpans.RankSpans rank : call.ranks()) {
            for (Timeline.Track track : rank.tracks()) {
                long free = 0;
                for (Timeline.Span span : track.spans()) {
                    column.putInt((int) (units(span.startNs()) - free));
                    free = units(span.endNs());
                }
            }
        }
        return column;
    }

    /**
     * Values that do not fit, such as the bytes of a very large chunk, become the largest that
     * does.
     */
    private ByteBuffer values(ToLongFunction<Timeline.Span> property) {
        ByteBuffer column = column();
        for (int i = 0; i < call.size(); i++) {
            column.putInt((int) Math.min(Integer.MAX_VALUE, property.applyAsLong(call.span(i))));
        }
        return column;
    }

    private ByteBuffer column() {
        return ByteBuffer.allocate(Integer.BYTES * call.size()).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static void column(JsonGenerator json, String name, ByteBuffer column)
            throws IOException {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        Deflater deflater = new Deflater(Deflater.BEST_SPEED);
        try (DeflaterOutputStream out = new DeflaterOutputStream(packed, deflater)) {
            out.write(column.array());
        } finally {
            deflater.end();
        }
        json.writeStringField(name, Base64.getEncoder().encodeToString(packed.toByteArray()));
    }
}
