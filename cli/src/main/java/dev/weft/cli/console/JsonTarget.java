package dev.weft.cli.console;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import dev.weft.json.Json;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;

/**
 * Where {@code --json} writes: nowhere, standard output, or a file that is written completely or
 * not at all.
 */
public final class JsonTarget {

    private final TextTarget text;

    /** What is written. */
    @FunctionalInterface
    public interface Content {
        void write(JsonGenerator json) throws IOException;
    }

    /**
     * @param target the option's value, or null
     */
    public JsonTarget(String target, PrintWriter out) {
        this.text = new TextTarget("--json", target, out);
    }

    public boolean toStandardOutput() {
        return text.toStandardOutput();
    }

    public void write(Content content) throws IOException {
        text.write(writer -> write(content, writer));
    }

    private static void write(Content content, Writer writer) throws IOException {
        try (JsonGenerator json = Json.generator(writer, new DefaultPrettyPrinter())) {
            json.writeStartObject();
            content.write(json);
            json.writeEndObject();
        }
        writer.write('\n');
    }
}
