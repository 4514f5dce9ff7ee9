package dev.weft.json;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What machines and records do not try: their own tests go through every kind of field. */
class JsonObjectTest {

    private static JsonObject parse(String json) {
        return JsonObject.parse("t.json", json.getBytes(StandardCharsets.UTF_8));
    }

    private static void assertRefused(String expected, Executable action) {
        String message = assertThrows(IllegalArgumentException.class, action).getMessage();
        assertTrue(message.startsWith("t.json: " + expected), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"UTF-8", "UTF-16BE", "UTF-16LE", "UTF-32BE", "UTF-32LE"})
    void aByteOrderMarkIsRefused(String charset) {
        byte[] json = "\ufeff{}".getBytes(Charset.forName(charset));
        assertRefused("is not JSON in UTF-8 without", () -> JsonObject.parse("t.json", json));
    }

    @ParameterizedTest
    @ValueSource(strings = {"UTF-16BE", "UTF-16LE", "UTF-32BE", "UTF-32LE"})
    void otherEncodingsAreRefused(String charset) {
        byte[] json = "{\"a\": 1}".getBytes(Charset.forName(charset));
        assertRefused("is not JSON in UTF-8 without", () -> JsonObject.parse("t.json", json));
    }

    @Test
    void aNameMayBeginWithAnyCharacter() {
        assertEquals(1, parse("{\"\uff41\":1}").whole("\uff41", Long.MIN_VALUE, Long.MAX_VALUE));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\u0001',
            value = {
                "{\"a\": 1, \"a\": 1}|is not JSON in line 1, column ",
                "{\"a\": {\"b\": 1, \"b\": 1}}|is not JSON in line 1, column ",
                "{} {}|has text behind its JSON object",
                "{} x|is not JSON in line 1, column ",
                "{|is not JSON in line 1, column ",
                "[]|is not a JSON object",
            })
    void onlyOneObjectIsRead(String json, String expected) {
        assertRefused(expected, () -> parse(json));
    }

    @Test
    void wholeNumbersAreThoseOf64Bits() {
        assertEquals(
                Long.MIN_VALUE,
                parse("{\"a\": -9223372036854775808}").whole("a", Long.MIN_VALUE, Long.MAX_VALUE));
        for (String other : List.of("9223372036854775808", "1.0", "1e3", "\"1\"", "true")) {
            assertRefused(
                    "a is " + other + ": expected a whole number",
                    () ->
                            parse("{\"a\": " + other + "}")
                                    .whole("a", Long.MIN_VALUE, Long.MAX_VALUE));
        }
    }

    @Test
    void nullIsAValueOnlyWhereItStandsForNone() {
        JsonObject json = parse("{\"a\": null}");
        assertTrue(json.has("a"));
        assertFalse(json.hasValue("a"));
        assertRefused("a is null: expected a text", () -> json.text("a"));
    }

    @Test
    void pathsLeadThroughObjectsAndArrays() {
        JsonObject json = parse("{\"a\": {\"b\": [{\"c\": 1}, {\"c\": {}}]}}");
        JsonObject last = json.object("a").objects("b").getLast();
        assertRefused("a.b[1].c is an object: expected a number", () -> last.number("c"));
        assertRefused("a.b[1].d is missing: expected a text beside c", () -> last.text("d"));
        assertRefused("d is missing: expected a text", () -> parse("{}").text("d"));
    }

    @Test
    void objectsOfALargeArrayAreReadAtOnce() {
        byte[] json =
                "{\"a\": {\"b\": [{\"c\": 1}, 2, {\"c\": 3}]}, \"b\": [{}]}"
                        .getBytes(StandardCharsets.UTF_8);
        JsonObject.LargeArrays large =
                new JsonObject.LargeArrays(
                        Pattern.compile("^a\\.b$"),
                        one -> one.whole("c", Long.MIN_VALUE, Long.MAX_VALUE));
        JsonObject read = JsonObject.read("t.json", new ByteArrayInputStream(json), large);
        JsonObject a = read.object("a");
        assertRefused(
                "a.b[1] is 2: expected an object",
                () ->
                        a.objects(
                                "b",
                                Long.class,
                                one -> one.whole("c", Long.MIN_VALUE, Long.MAX_VALUE)));
        assertEquals(1, read.objects("b").size());
        JsonObject.LargeArrays wrong =
                new JsonObject.LargeArrays(Pattern.compile("^a\\.b$"), one -> one.text("c"));
        assertRefused(
                "a.b[0].c is 1: expected a text",
                () -> JsonObject.read("t.json", new ByteArrayInputStream(json), wrong));
    }

    @Test
    void anObjectIsWrittenAsItWasRead() throws IOException {
        String json = "{\"a\":[1,-2.50,1e999,[]],\"b\":{\"c\":null,\"d\":true},\"e\":\"\\n\"}";
        StringWriter text = new StringWriter();
        try (JsonGenerator generator = Json.generator(text)) {
            generator.writeStartObject();
            parse(json).write(generator);
            generator.writeEndObject();
        }
        assertEquals(json, text.toString());
    }
}
