package dev.weft.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.PrettyPrinter;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;
import java.util.stream.IntStream;

/** Parsers and generators of JSON, all configured alike. Thread-safe. */
public final class Json {

    /** Far more than any record has: where a value lies is told by a path as long as it is deep. */
    private static final StreamReadConstraints SHALLOW =
            StreamReadConstraints.builder().maxNestingDepth(32).build();

    private static final JsonFactory JSON = strict().build();

    private Json() {}

    /** Settings of parsers that refuse a repeated name, which readers would treat differently. */
    public static JsonFactoryBuilder strict() {
        return new JsonFactoryBuilder()
                .streamReadConstraints(SHALLOW)
                .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                // Names from outside would stay in the JVM's own table.
                .disable(JsonFactory.Feature.INTERN_FIELD_NAMES);
    }

    /**
     * @param in supports mark and reset
     */
    static JsonParser parser(String origin, InputStream in) throws IOException {
        in.mark(Integer.BYTES);
        byte[] start = in.readNBytes(Integer.BYTES);
        in.reset();
        if (!isStartOfUtf8(start)) {
            throw new IllegalArgumentException(
                    origin + ": is not JSON in UTF-8 without a byte order mark");
        }
        return JSON.createParser(in);
    }

    /** A parser would skip a byte order mark, and take zeros for a sign of UTF-16 or UTF-32. */
    private static boolean isStartOfUtf8(byte[] start) {
        boolean marked = start.length > 0 && start[0] < 0;
        return !marked && IntStream.range(0, start.length).noneMatch(i -> start[i] == 0);
    }

    /** A generator that leaves the writer open. */
    public static JsonGenerator generator(Writer writer) throws IOException {
        return JSON.createGenerator(writer).disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET);
    }

    /** A generator with a layout, which must be a new one: it may track the depth of the text. */
    public static JsonGenerator generator(Writer writer, PrettyPrinter layout) throws IOException {
        return generator(writer).setPrettyPrinter(layout);
    }
}
