package dev.weft.tensor;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.weft.json.Json;
import dev.weft.process.SafeText;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The directory at the start of a safetensors file. A parsed directory is known to match the file:
 * its tensors follow each other from the header to the last byte. Immutable.
 */
record SafetensorsHeader(Map<String, Entry> tensors) {

    /** A key for free text about the file, not for a tensor. */
    static final String METADATA = "__metadata__";

    /** No real tensor has more dimensions. */
    private static final int MAX_DIMENSIONS = 64;

    /**
     * Names are not cached: each is used once, and there may be more than a parser's table can
     * hold.
     */
    static final JsonFactory JSON =
            Json.strict().disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES).build();

    /**
     * One tensor.
     *
     * @param begin relative to the end of the header, in bytes
     * @param end first byte after the tensor
     */
    record Entry(String dtype, List<Long> shape, long begin, long end) {}

    static SafetensorsHeader parse(byte[] json, long dataBytes, InputFile file) {
        // A parser would skip a byte order mark or spaces; the format allows neither.
        if (json.length == 0 || json[0] != '{') {
            throw file.refusal(
                    "has a damaged header: it begins with %s, not with { (byte 123)"
                            .formatted(json.length == 0 ? "nothing" : "byte " + (json[0] & 0xff)));
        }
        Map<String, Entry> tensors;
        try (JsonParser parser = JSON.createParser(json)) {
            tensors = new Reader(parser, file).tensors();
        } catch (IOException e) {
            String reason =
                    e instanceof JacksonException jackson
                            ? jackson.getOriginalMessage()
                            : e.getMessage();
            throw file.refusal("has a damaged header: " + SafeText.excerpt(reason), e);
        }
        checkOffsets(tensors, dataBytes, file);
        return new SafetensorsHeader(tensors);
    }

    /** The format allows neither overlaps nor holes, so every byte has one owner. */
    private static void checkOffsets(Map<String, Entry> tensors, long dataBytes, InputFile file) {
        List<Map.Entry<String, Entry>> inOrder = new ArrayList<>(tensors.entrySet());
        inOrder.sort(
                Comparator.<Map.Entry<String, Entry>>comparingLong(t -> t.getValue().begin())
                        .thenComparingLong(t -> t.getValue().end()));
        long next = 0;
        for (Map.Entry<String, Entry> tensor : inOrder) {
            Entry entry = tensor.getValue();
            if (entry.begin() != next || entry.end() < next || entry.end() > dataBytes) {
                throw file.refusal(
                        """
                        places tensor '%s' at bytes %s to %s: expected it to start at %s and to \
                        end by %s"""
                                .formatted(
                                        SafeText.excerpt(tensor.getKey()),
                                        entry.begin(),
                                        entry.end(),
                                        next,
                                        dataBytes));
            }
            next = entry.end();
        }
        if (next != dataBytes) {
            throw file.refusal(
                    "holds " + dataBytes + " bytes of tensors: its header accounts for " + next);
        }
    }

    /** Turns the parser's tokens into entries. */
    private record Reader(JsonParser parser, InputFile file) {

        Map<String, Entry> tensors() throws IOException {
            Map<String, Entry> tensors = new LinkedHashMap<>();
            require(parser.nextToken(), JsonToken.START_OBJECT, "the header");
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                JsonToken value = parser.nextToken();
                if (name.equals(METADATA)) {
                    parser.skipChildren();
                    continue;
                }
                String what = "tensor '" + SafeText.excerpt(name) + "'";
                require(value, JsonToken.START_OBJECT, what);
                tensors.put(name, entry(what));
            }
            if (parser.nextToken() != null) {
                throw file.refusal("has more than one JSON value in its header");
            }
            return tensors;
        }

        private Entry entry(String what) throws IOException {
            String dtype = null;
            List<Long> shape = null;
            List<Long> offsets = null;
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String key = parser.currentName();
                JsonToken value = parser.nextToken();
                switch (key) {
                    case "dtype" -> {
                        require(value, JsonToken.VALUE_STRING, "the dtype of " + what);
                        dtype = parser.getText();
                    }
                    case "shape" -> shape = numbers(value, "the shape of " + what);
                    case "data_offsets" -> offsets = numbers(value, "the offsets of " + what);
                    default -> parser.skipChildren();
                }
            }
            if (dtype == null || shape == null || offsets == null || offsets.size() != 2) {
                throw file.refusal(
                        "describes " + what + " without dtype, shape or data_offsets [begin, end]");
            }
            return new Entry(dtype, shape, offsets.get(0), offsets.get(1));
        }

        private List<Long> numbers(JsonToken token, String what) throws IOException {
            require(token, JsonToken.START_ARRAY, what);
            List<Long> numbers = new ArrayList<>();
            while (parser.nextToken() != JsonToken.END_ARRAY) {
                require(parser.currentToken(), JsonToken.VALUE_NUMBER_INT, what);
                long number = parser.getLongValue();
                if (number < 0 || numbers.size() == MAX_DIMENSIONS) {
                    throw file.refusal(
                            "gives %s in %s: expected at most %s numbers of zero or more"
                                    .formatted(number, what, MAX_DIMENSIONS));
                }
                numbers.add(number);
            }
            return List.copyOf(numbers);
        }

        private void require(JsonToken actual, JsonToken expected, String what) {
            if (actual != expected) {
                throw file.refusal(
                        "has a damaged header: " + what + " is " + actual + ", not " + expected);
            }
        }
    }
}
