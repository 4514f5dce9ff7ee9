package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Records as they were written; of those that are odd, a page or one line. */
class RecordReaderTest {

    @TempDir Path folder;

    static RecordReader.Read read(String json) {
        return read(json.getBytes(StandardCharsets.UTF_8));
    }

    static RecordReader.Read read(byte[] json) {
        return RecordReader.read("r.json", new ByteArrayInputStream(json));
    }

    /** Two ranks, a wait and both kinds of other spans. */
    static String small() {
        return new RecordMaker().ranks(2, 1).waits(1000).label("small").json();
    }

    private static void assertSame(RunRecord written, RunRecord read) {
        assertEquals(written.problem(), read.problem());
        assertEquals(written.execution(), read.execution());
        assertEquals(written.views(), read.views());
        assertEquals(written.verification(), read.verification());
        assertEquals(written.ranks(), read.ranks());
        assertEquals(written.environment(), read.environment());
        assertEquals(written.label(), read.label());
        assertEquals(written.flopsPerRank(), read.flopsPerRank(), 1e-12 * written.flopsPerRank());
    }

    static List<RecordMaker> makers() {
        return List.of(
                new RecordMaker(),
                new RecordMaker().label("a \"label\" </script> \u00e4\u20ac\ud83d\ude00\n"),
                new RecordMaker().ranks(4, 2).waits(50_000).chunks(8, 5000),
                new RecordMaker().estimated(),
                new RecordMaker().simulatedOn("trn2").views(1500, 400, 2100, 1700.0),
                new RecordMaker().inPlace().hosts(4).algorithm("direct", "direct"),
                new RecordMaker()
                        .verified(
                                new Verification(
                                        Promise.FLOAT64_BOUND,
                                        null,
                                        false,
                                        true,
                                        false,
                                        0.5,
                                        0.25,
                                        10,
                                        99,
                                        true,
                                        0)));
    }

    @ParameterizedTest
    @MethodSource("makers")
    void aRecordIsReadAsItWasWritten(RecordMaker maker) {
        RecordReader.Read read = read(maker.json());
        assertNull(read.sweep());
        assertSame(maker.record(), read.run());
    }

    /** A product with infinities in it is told so; such records above all are looked at. */
    @ParameterizedTest
    @ValueSource(doubles = {Double.POSITIVE_INFINITY, Double.NaN})
    void theRecordOfAProductThatIsNoNumberIsReadToo(double error) {
        RecordMaker maker =
                new RecordMaker()
                        .verified(
                                new Verification(
                                        Promise.BITWISE,
                                        true,
                                        false,
                                        false,
                                        null,
                                        error,
                                        error,
                                        64,
                                        64,
                                        false,
                                        0));
        ShownRun shown = RunView.of(read(maker.json()).run(), "r.json");
        assertEquals(ShownRun.State.FAILED, shown.verdict().state());
    }

    @Test
    void aFilesNameStandsForItInMessages() throws IOException {
        Path file = Files.writeString(folder.resolve("mine.json"), "[]");
        IllegalArgumentException wrong =
                assertThrows(IllegalArgumentException.class, () -> RecordReader.read(file));
        assertEquals("mine.json: is not a JSON object { ... }", wrong.getMessage());
        Files.writeString(file, small());
        assertEquals("small", RecordReader.read(file).run().label());
    }

    @Test
    void fieldsOfALaterVersionAreNoError() {
        String json = JsonText.with(small(), "problem.later", "{\"spans\": 1, \"x\": [[null]]}");
        json = JsonText.with(json, "ranks.0.later", "\"text\"");
        json = JsonText.with(json, "ranks.0.tracks.1.spans.0.later", "7");
        assertEquals("small", read(json).run().label());
    }

    @ParameterizedTest
    @ValueSource(strings = {"\"text\"", "1.5", "null", "true", "[1, {\"a\": 2}]", "{\"a\": [1]}"})
    void fieldsOfALaterVersionAreNoErrorInSpansEither(String value) {
        String json = JsonText.with(small(), "ranks.0.tracks.1.spans.0.later", value);
        assertSame(read(small()).run(), read(json).run());
    }

    @ParameterizedTest
    @ValueSource(strings = {"to", "chunk", "bytes"})
    void aSpanMayLackWhatOnlyTransfersHave(String field) {
        read(JsonText.without(small(), "ranks.1.tracks.0.spans.1." + field));
    }

    /** Of one row, which has these fields too. */
    private static String sweep(String fields) {
        return "{\"schema\":\"weft.sweep/1\",\"machine\":\"m\",\"aDtype\":\"fp16\",\"outDtype\":\"fp32\","
                + "\"rhs\":\"replicated\",\"rows\":[{\"m\":1,\"k\":2,\"n\":3,\"ranks\":4,"
                + "\"algorithm\":\"ring\","
                + fields
                + "}]}";
    }

    @Test
    void aSweepIsKeptAsItIs() throws IOException {
        String json =
                sweep(
                        "\"chunks\":4,\"chunkRows\":8,\"lanes\":1,\"predictedUs\":1.5,"
                                + "\"limitFraction\":0.5,\"best\":true,\"reason\":null,"
                                + "\"list\":[1,[2]],\"later\":{\"a\":\"<b>\"}");
        RecordReader.Read read = read(json);
        assertNull(read.run());
        assertEquals("m", read.machine());
        assertEquals(JsonText.parse(json), JsonText.at(written(read), "sweep"));
    }

    private static Object written(RecordReader.Read sweep) throws IOException {
        StringWriter text = new StringWriter();
        PageJson.write(PageData.sweep("s", sweep.sweep()), "9.9", text);
        return JsonText.parse(text.toString());
    }

    /** It has none today; an array of that name is no reason to fail. */
    @Test
    void aSweepMayHaveAFieldCalledSpans() throws IOException {
        String json = sweep("\"reason\":\"too few\",\"spans\":[]");
        assertEquals(JsonText.parse(json), JsonText.at(written(read(json)), "sweep"));
    }

    /** What a reader lets through, the page can show. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ranks.1.shardRows|1099511627776",
                "ranks.1.shardRows|9223372036854775807",
                "ranks.1.chunkRows|0",
                "problem.m|0",
                "problem.m|9223372036854775807",
                "problem.k|9223372036854775807",
                "ranks.0.elapsedNs|2305843009213693951",
                "ranks.0.startNs|2305843009213693951",
                "ranks.0.tracks.1.spans.2.endNs|2305843009213693951",
                "iterations|2147483647",
                "views.pipelined.samplesUs|[0]",
                "views.pipelined.samplesUs|[1e308, 1e308]",
                "ranks.0.tracks|[]"
            })
    void anOddRecordIsShownOrRefused(String path, String value) throws IOException {
        String json = JsonText.with(small(), path, value);
        shownOrRefused(json);
    }

    @Test
    void aRecordOfTheSecondGroupAloneIsShownOrRefused() throws IOException {
        shownOrRefused(RecordMaker.json(new RecordMaker().ranks(4, 2).lastRankAlone()));
    }

    private static void shownOrRefused(String json) throws IOException {
        RunRecord record;
        try {
            record = read(json).run();
        } catch (IllegalArgumentException e) {
            assertTrue(e.getMessage().startsWith("r.json: "), e.getMessage());
            return;
        }
        StringWriter text = new StringWriter();
        ShownRun shown = RunView.of(record, "r.json");
        PageJson.write(PageData.of(shown), "9.9", text);
        TraceJson.write(shown.call(), shown.flopsPerRow(), Map.of(), new StringWriter());
        for (String noNumber : List.of("\"NaN\"", "\"Infinity\"", "\"-Infinity\"")) {
            assertTrue(!text.toString().contains(noNumber), noNumber + " where a number stands");
        }
    }
}
