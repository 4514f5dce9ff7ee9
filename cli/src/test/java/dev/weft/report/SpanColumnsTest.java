package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.InflaterInputStream;
import org.junit.jupiter.api.Test;

/** Decodes the columns as the page does. */
class SpanColumnsTest {

    /** Of some columns, as they stand in the page's data. */
    private static final class Decoder {

        private final Map<?, ?> columns;
        private final long unitNs;
        private final int count;

        Decoder(CallSpans call) throws IOException {
            SpanColumns written = new SpanColumns(call);
            StringWriter text = new StringWriter();
            try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
                json.writeStartObject();
                written.write(json);
                json.writeEndObject();
            }
            columns = (Map<?, ?>) JsonText.at(JsonText.parse(text.toString()), "columns");
            unitNs = written.unitNs();
            count = call.size();
        }

        int[] column(String name) throws IOException {
            byte[] packed = Base64.getDecoder().decode((String) columns.get(name));
            try (InputStream in = new InflaterInputStream(new ByteArrayInputStream(packed))) {
                byte[] bytes = in.readAllBytes();
                assertEquals(4 * count, bytes.length, name);
                IntBuffer ints =
                        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer();
                int[] values = new int[count];
                ints.get(values);
                return values;
            }
        }

        /** Spans again, each within a unit of what was written. */
        void check(CallSpans call) throws IOException {
            int[] gaps = column("gap");
            int[] lengths = column("length");
            int number = 0;
            for (CallSpans.RankSpans rank : call.ranks()) {
                for (Timeline.Track track : rank.tracks()) {
                    long at = 0;
                    for (Timeline.Span span : track.spans()) {
                        long start = at + gaps[number];
                        at = start + lengths[number++];
                        assertEquals(span.startNs() / unitNs, start, span::toString);
                        assertEquals(span.endNs() / unitNs, at, span::toString);
                    }
                }
            }
            assertEquals(count, number);
            int[] kinds = column("kind");
            int[] sources = column("source");
            int[] peers = column("peer");
            int[] receivers = column("to");
            int[] chunks = column("chunk");
            int[] firstRows = column("firstRow");
            int[] rows = column("rows");
            int[] bytes = column("bytes");
            for (int i = 0; i < count; i++) {
                Timeline.Span span = call.span(i);
                assertEquals(
                        List.of(Kind.STAGE, Kind.WAIT, Kind.TRANSFER, Kind.COMPUTE)
                                        .indexOf(span.kind())
                                + (span.estimated() ? 4 : 0),
                        kinds[i]);
                assertEquals(span.source(), sources[i]);
                assertEquals(span.peer(), peers[i]);
                assertEquals(span.to(), receivers[i]);
                assertEquals(span.chunk(), chunks[i]);
                assertEquals(span.firstRow(), firstRows[i]);
                assertEquals(span.rows(), rows[i]);
                assertEquals(Math.min(Integer.MAX_VALUE, span.bytes()), bytes[i]);
            }
        }
    }

    @Test
    void decodeBackToTheSpans() throws IOException {
        CallSpans call =
                Calls.call(
                        Calls.rank(
                                0,
                                7,
                                Calls.track("caller"),
                                Calls.track(
                                        "lane-0",
                                        Calls.wait(1, 0, 5),
                                        Calls.transfer(1, 1, 0, 0, 5, 9),
                                        Calls.transfer(1, 1, 0, 1, 8, 30).asEstimated())),
                        Calls.rank(
                                1, 0, Calls.track("compute-0", Calls.product(0, 1, 0, 100, 0, 0))));
        Decoder decoder = new Decoder(call);
        assertEquals(1, decoder.unitNs);
        assertEquals(
                Set.of(
                        "gap",
                        "length",
                        "kind",
                        "source",
                        "peer",
                        "to",
                        "chunk",
                        "firstRow",
                        "rows",
                        "bytes"),
                decoder.columns.keySet());
        decoder.check(call);
    }

    @Test
    void realAndSimulatedCallsDecodeBack() throws IOException {
        Shards shards = Shards.of(40, 0, 33);
        for (CallSpans call :
                List.of(
                        Calls.real(Algorithm.RING, shards, 2, builder -> builder.chunkRows(8)),
                        Calls.simulated("Ascend910B1", Algorithm.MESH_PUSH, shards, 4))) {
            assertTrue(call.size() > 20, "there is something to decode");
            new Decoder(call).check(call);
        }
    }

    /** An hour in nanoseconds and 3 GiB in bytes do not fit 31 bits. */
    @Test
    void longCallsHaveALargerUnitAndLargeChunksTheLargestNumber() throws IOException {
        long hour = 3_600_000_000_000L;
        Timeline.Span large =
                new Timeline.Span(Kind.TRANSFER, 0, 0, 0, 0, 0, 1, 3L << 30, hour - 5, hour);
        CallSpans call =
                Calls.call(
                        Calls.rank(
                                0,
                                0,
                                Calls.track(
                                        "lane-0", Calls.transfer(0, 0, 0, 0, 1000, 9999), large),
                                Calls.track("lane-1", large, large)));
        Decoder decoder = new Decoder(call);
        assertTrue(hour / decoder.unitNs <= Integer.MAX_VALUE, "unit " + decoder.unitNs);
        assertTrue(hour / (decoder.unitNs - 1) > Integer.MAX_VALUE, "no larger than it must be");
        decoder.check(call);
    }

    @Test
    void noSpansAreEmptyColumns() throws IOException {
        Decoder decoder = new Decoder(CallSpans.of(List.of(), 1, 1));
        assertEquals(0, decoder.column("gap").length);
    }
}
