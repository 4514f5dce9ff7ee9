package dev.weft.report;

import static dev.weft.report.RecordReaderTest.read;
import static dev.weft.report.RecordReaderTest.small;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every way in which a record can be wrong: one line that says where. */
class WrongRecordsTest {

    /** The one line that refuses it. */
    private static String refused(String json) {
        IllegalArgumentException wrong =
                assertThrows(IllegalArgumentException.class, () -> read(json));
        assertEquals(IllegalArgumentException.class, wrong.getClass());
        assertEquals(1, wrong.getMessage().lines().count(), wrong.getMessage());
        assertTrue(wrong.getMessage().startsWith("r.json: "), wrong.getMessage());
        return wrong.getMessage();
    }

    @Test
    void whereverItIsCutOffItIsRefused() {
        byte[] whole = small().getBytes(StandardCharsets.UTF_8);
        for (int length = 0; length < whole.length - 1; length += 1 + length % 13) {
            refused(new String(whole, 0, length, StandardCharsets.UTF_8));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " \n\t "})
    void anEmptyFileIsRefused(String text) {
        assertEquals("r.json: is not a JSON object { ... }", refused(text));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "null|is not a JSON object",
                "[1]|is not a JSON object",
                "hello|is not JSON in line 1",
                "{|is not JSON in line 1",
                "{} {}|has text behind its JSON object",
                "{} x|is not JSON in line 1",
                "{'a': 1}|is not JSON in line 1",
                "{}|schema is missing: expected a text",
                "{\"schema\": 3}|schema is 3: expected a text",
                "{\"schema\": null}|schema is null: expected a text",
                "{\"schema\": {}}|schema is an object: expected a text",
                "{\"schema\": \"weft.gather/1\"}|schema is weft.gather/1: expected weft.run/1,",
                "{\"schema\": \"weft.run/2\"}|schema is weft.run/2: expected weft.run/1, weft.",
                "{\"schema\": \"weft.run/1\"}|problem is missing: expected an object",
                "{\"schema\": \"weft.sweep/1\"}|rows is missing: expected an array",
                "{\"schema\": \"weft.sweep/1\", \"rows\": [3]}|rows[0] is 3: expected an object",
                "{\"schema\": \"weft.sweep/1\", \"rows\": []}|machine is missing: expected a text"
            },
            quoteCharacter = '\u0001')
    void whatIsNoRecordIsRefused(String json, String expected) {
        String message = refused(json);
        assertTrue(message.contains(expected), message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\u0001',
            value = {
                "problem|3|problem is 3: expected an object",
                "problem.ranks|0|problem.ranks is 0: expected a whole number from 1 to",
                "problem.ranks|-2|problem.ranks is -2: expected a whole number from 1 to",
                "problem.ranks|9223372036854775807|problem.ranks is 9223372036854775807: expected",
                "problem.ranks|99999999999999999999|problem.ranks is ",
                "problem.ranks|2.5|problem.ranks is 2.5: expected a whole number",
                "problem.ranks|\"2\"|problem.ranks is \"2\": expected a whole number",
                "problem.groups|0|problem.groups is 0: expected a whole number from 1 to 2",
                "problem.groups|3|problem.groups is 3: expected a whole number from 1 to 2",
                "problem.m|-1|problem.m is -1: expected",
                "problem.k|-1|problem.k is -1: expected",
                "problem.n|-1|problem.n is -1: expected",
                "problem.m|1e300|problem.m is 1e300: expected a whole number",
                "problem.aDtype|\"int4\"|problem.aDtype is wrong: unknown dtype 'int4'",
                "problem.transposeB|1|problem.transposeB is 1: expected true or false",
                "hosts|[]|hosts",
                "hosts|[-2]|hosts",
                "hosts|[2.5]|hosts",
                "hosts|[1e99]|hosts",
                "hosts|[\"2\"]|hosts[0] is \"2\": expected a whole number",
                "hosts|{}|hosts is an object: expected an array",
                "computeWorkers|-1|computeWorkers is -1: expected a whole number from 0 to",
                "lanes|2147483648|lanes is 2147483648: expected a whole number from 0 to 2147483647",
                "iterations|0|iterations is 0: expected a whole number from 1 to",
                "views.pipelined|[]|views.pipelined is an empty array: expected an object",
                "views.pipelined.samplesUs|[]|views.pipelined.samplesUs is an empty array: expected",
                "views.pipelined.samplesUs|[null]|views.pipelined.samplesUs[0] is null: expected",
                "views.pipelined.samplesUs|[1, -1]|views.pipelined.samplesUs",
                "views.sequential.comm.samplesUs|[1e999]|views.sequential.comm.samplesUs",
                "views.sequential.compute.samplesUs|3|views.sequential.compute.samplesUs is 3",
                "tflops|1e999|tflops",
                "tflops|-1|tflops",
                "verification.promise|\"none\"|verification.promise is \"none\": expected one of bitwise,",
                "verification.withinBound|null|verification.withinBound is null: expected true",
                "verification.checkedRows|-1|verification.checkedRows is -1: expected",
                "verification.totalRows|-1|verification.totalRows is -1: expected",
                "ranks|[]|ranks is an empty array: expected at least one",
                "ranks|[[]]|ranks[0] is an empty array: expected an object",
                "ranks.1.rank|2|ranks[1].rank is 2: expected a whole number from 0 to 1",
                "ranks.1.rank|-1|ranks[1].rank is -1: expected a whole number from 0 to 1",
                "ranks.1.rank|0|ranks[1].rank is 0",
                "ranks.1.group|1|ranks[1].group is 1: expected a whole number from 0 to 0",
                "ranks.1.shardRows|-1|ranks[1].shardRows is -1: expected",
                "ranks.1.chunkRows|-1|ranks[1].chunkRows is -1: expected",
                "ranks.1.elapsedNs|-1|ranks[1].elapsedNs is -1: expected",
                "ranks.1.elapsedNs|9223372036854775807|ranks[1].elapsedNs is 9223372036854775807",
                "ranks.1.startNs|-9223372036854775807|ranks[1].startNs is -9223372036854775807",
                "ranks.1.startNs|9223372036854775807|ranks[1].startNs is 9223372036854775807",
                "ranks.1.tracks|7|ranks[1].tracks is 7: expected an array",
                "ranks.1.tracks.0.name|7|ranks[1].tracks[0].name is 7: expected a text",
                "ranks.1.tracks.0.spans|7|ranks[1].tracks[0].spans is 7: expected an array",
                "ranks.1.tracks.0.spans|{}|ranks[1].tracks[0].spans is an object: expected",
                "environment.cores|0|environment.cores is 0: expected a whole number from 1 to",
                "environment.started|[]|environment.started is an empty array: expected a text",
                "label|{}|label is an object: expected a text"
            })
    void aWrongFieldIsNamed(String path, String value, String expected) {
        String message = refused(JsonText.with(small(), path, value));
        assertTrue(message.startsWith("r.json: " + expected), message);
    }

    @Test
    void groupsMustDivideTheRanksAndHoldThem() {
        String json = new RecordMaker().ranks(4, 2).json();
        assertTrue(
                refused(JsonText.with(json, "problem.groups", "3"))
                        .startsWith("r.json: problem.groups is 3: expected a divisor of 4"));
        assertTrue(
                refused(JsonText.with(json, "ranks.0.group", "1"))
                        .startsWith("r.json: ranks[0].group is 1"),
                "rank 0 is of the first group");
        String lists = JsonText.with(json, "problem.replicaGroups", "\"0,1/2,3\"");
        assertEquals("0,1/2,3", read(lists).run().problem().replicaGroups());
        for (String wrong : List.of("0,1", "0,1/1,2", "0,1/2,4", "0,1/x", "")) {
            String message =
                    refused(JsonText.with(json, "problem.replicaGroups", '"' + wrong + '"'));
            assertTrue(message.startsWith("r.json: problem.replicaGroups is " + wrong), message);
        }
        assertTrue(
                refused(JsonText.with(json, "problem.replicaGroups", "\"0,2/1,3\""))
                        .startsWith("r.json: ranks[1].group is 0: expected the group of rank 1"));
        assertTrue(
                refused(JsonText.with(json, "problem.replicaGroups", "\"0,1/2\""))
                        .startsWith("r.json: ranks[2].tracks[0].spans name a rank"));
    }

    /** Spans are read apart from the rest. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\u0001',
            value = {
                "kind|\"sleep\"|kind is \"sleep\": expected one of stage, wait, transfer, compute",
                "kind|null|kind",
                "kind|3|kind",
                "source|-1|source is -1: expected a whole number from 0 to",
                "source|3000000000|source is 3000000000: expected a whole number from 0 to",
                "source|99999999999999999999999|99999999999999999999999",
                "peer|-1|peer is -1: expected a whole number from 0 to",
                "peer|\"0\"|peer",
                "to|-2|to is -2: expected a whole number from -1 to",
                "to|1.5|to",
                "chunk|-2|chunk is -2: expected a whole number from -1 to",
                "firstRow|-1|firstRow is -1: expected a whole number from 0 to",
                "rows|-1|rows is -1: expected a whole number from 0 to",
                "rows|[]|rows",
                "bytes|-1|bytes is -1: expected a whole number from 0 to",
                "bytes|9223372036854775807|bytes is 9223372036854775807: expected a whole number from 0 to",
                "startNs|-1|startNs is -1: expected a whole number from 0 to",
                "startNs|null|startNs",
                "endNs|1000|endNs is 1000: expected its startNs, 30000, or more"
            })
    void aWrongFieldOfASpanIsNamed(String field, String value, String expected) {
        String message =
                refused(JsonText.with(small(), "ranks.1.tracks.0.spans.1." + field, value));
        assertTrue(message.startsWith("r.json: ranks[1].tracks[0].spans[1]." + field), message);
        assertTrue(message.contains(expected), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"3", "null", "\"x\"", "[]", "{}"})
    void whatIsNoSpanIsRefused(String value) {
        String message = refused(JsonText.with(small(), "ranks.1.tracks.0.spans.1", value));
        assertTrue(message.startsWith("r.json: ranks[1].tracks[0].spans[1]"), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"source", "peer", "to"})
    void spansNameRanksThatAreThere(String field) {
        String message = refused(JsonText.with(small(), "ranks.1.tracks.0.spans.1." + field, "2"));
        assertTrue(
                message.startsWith(
                        "r.json: ranks[1].tracks[0].spans name a rank that is not among the 2: "),
                message);
    }

    /** What the writer always writes and the page shows. */
    @Test
    void noFieldThatIsNeededMayBeMissing() {
        String json = small();
        Set<String> optional =
                Set.of(
                        "label",
                        "simulated",
                        "machine",
                        "linkBitsPerSecond",
                        "peers",
                        "progressCpu",
                        "replicaGroups",
                        "epilogue",
                        "op",
                        "kParts",
                        "scales",
                        "order",
                        "speedup",
                        "overlapEfficiency",
                        "limitFraction",
                        "conclusion",
                        "saved",
                        "noise",
                        "sentence",
                        "verification",
                        "gatheredExact",
                        "seedRulePassed",
                        "passed",
                        "notFinite",
                        "meanUs",
                        "medianUs",
                        "spreadUs");
        List<String> paths = new ArrayList<>();
        collect("", JsonText.parse(json), paths);
        for (String path : paths) {
            String field = path.substring(path.lastIndexOf('.') + 1);
            if (optional.contains(field)) {
                read(JsonText.without(json, path));
            } else {
                String message = refused(JsonText.without(json, path));
                assertTrue(message.contains(field), () -> path + ": " + message);
            }
        }
        assertTrue(paths.size() > 60, "all of them: " + paths.size());
    }

    /** Paths of all fields outside of spans; of arrays the first element stands for all. */
    private static void collect(String path, Object value, List<String> paths) {
        String start = path.isEmpty() ? "" : path + ".";
        if (value instanceof Map<?, ?> fields) {
            fields.forEach(
                    (name, field) -> {
                        paths.add(start + name);
                        collect(start + name, field, paths);
                    });
        } else if (value instanceof List<?> items
                && !items.isEmpty()
                && items.getFirst() instanceof Map
                && !path.endsWith("spans")) {
            collect(start + 0, items.getFirst(), paths);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"kind", "source", "peer", "firstRow", "rows", "startNs", "endNs"})
    void noFieldThatASpanNeedsMayBeMissing(String field) {
        String message = refused(JsonText.without(small(), "ranks.1.tracks.0.spans.1." + field));
        assertTrue(
                message.startsWith(
                        "r.json: ranks[1].tracks[0].spans[1]." + field + " is missing: expected"),
                message);
    }

    @Test
    void nothingMayBeThereTwice() {
        String json = small();
        for (String field : List.of("schema", "problem", "aDtype", "samplesUs", "kind", "rows")) {
            int at = json.indexOf('"' + field + '"');
            String twice = json.substring(0, at) + '"' + field + "\": 0, " + json.substring(at);
            String message = refused(twice);
            assertTrue(message.contains(field), message);
        }
    }

    @ParameterizedTest
    @CsvSource({"[,]", "'{\"a\":','}'"})
    void deepNestingIsRefusedAndNoStackOverflows(String open, String close) {
        int depth = 100_000;
        String nested = open.repeat(depth) + "1" + close.repeat(depth);
        refused(nested.startsWith("{") ? nested : "{\"a\":" + nested + "}");
        refused(JsonText.with(small(), "later", nested));
        refused(JsonText.with(small(), "ranks.0.tracks.0.spans", nested));
    }

    @Test
    void aLongTextIsNotRepeatedInTheMessage() {
        String message = refused(JsonText.with(small(), "problem.m", '"' + "x".repeat(9999) + '"'));
        assertTrue(message.length() < 200, message);
    }

    @Test
    void bytesThatAreNoTextAreRefused() {
        byte[] json = small().getBytes(StandardCharsets.UTF_8);
        int at = small().indexOf("small");
        json[at] = (byte) 0xFF;
        IllegalArgumentException wrong =
                assertThrows(IllegalArgumentException.class, () -> read(json));
        assertTrue(wrong.getMessage().startsWith("r.json: is not JSON in line "), "" + wrong);
        for (byte[] start : new byte[][] {{0, 0, 0, '{'}, {(byte) 0xFE, (byte) 0xFF}, {0}}) {
            assertThrows(IllegalArgumentException.class, () -> read(start));
        }
    }

    /** What a record says is repeated on one line, however long it is and whatever is in it. */
    @ParameterizedTest
    @ValueSource(strings = {"a\\nb", "\\u001b[31m", "\\u009b", "\\u2028"})
    void textsOfARecordAreRepeatedOnOneLine(String text) {
        String value = '"' + text + "x".repeat(3000) + '"';
        for (String path :
                List.of(
                        "schema",
                        "problem.ranks",
                        "problem.aDtype",
                        "verification.promise",
                        "ranks.1.tracks.0.spans.0.kind")) {
            String message = refused(JsonText.with(small(), path, value));
            assertTrue(message.length() < 300, message);
            assertTrue(message.chars().noneMatch(c -> Character.isISOControl(c) || c == 0x2028));
        }
    }
}
