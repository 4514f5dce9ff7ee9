package dev.weft.cli.console;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import dev.weft.files.AtomicFile;
import dev.weft.json.Json;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Where an option such as {@code --json} or {@code --csv} writes: nowhere, standard output, or a
 * file that is written completely or not at all.
 */
public final class TextTarget {

    private final String target;
    private final PrintWriter out;

    /** What is written. */
    @FunctionalInterface
    public interface Content {
        void write(Writer writer) throws IOException;
    }

    /**
     * @param target the option's value, or null
     * @param out standard output; null if it may not be used
     */
    public TextTarget(String option, String target, PrintWriter out) {
        this.target = target;
        this.out = out;
        if (out == null && toStandardOutput()) {
            throw new UsageException(option + " -: expected a file");
        }
        if (target != null && !toStandardOutput()) {
            check(option, out == null ? "" : ", or -");
        }
    }

    /** The fields of a JSON object. */
    @FunctionalInterface
    public interface JsonFields {
        void write(JsonGenerator json) throws IOException;
    }

    public static TextTarget json(String target, PrintWriter out) {
        return new TextTarget("--json", target, out);
    }

    /** A target that cannot be standard output. */
    public static TextTarget file(String option, String target) {
        return new TextTarget(option, target, null);
    }

    private void check(String option, String orElse) {
        Path file = Path.of(target).toAbsolutePath();
        if (!isUsable(file.getParent()) || Files.exists(file) && !Files.isRegularFile(file)) {
            throw new UsageException(
                    "%s %s: expected a file in a folder that exists and can be written to%s",
                    option, target, orElse);
        }
    }

    private static boolean isUsable(Path folder) {
        return folder != null && Files.isDirectory(folder) && Files.isWritable(folder);
    }

    public boolean toStandardOutput() {
        return "-".equals(target);
    }

    public void write(Content content) throws IOException {
        if (target == null) {
            return;
        }
        if (toStandardOutput()) {
            content.write(out);
            out.flush();
            return;
        }
        AtomicFile.write(
                Path.of(target),
                channel -> {
                    Writer writer =
                            new BufferedWriter(Channels.newWriter(channel, StandardCharsets.UTF_8));
                    content.write(writer);
                    writer.flush();
                });
    }

    /** Writes one JSON object. */
    public void writeJson(JsonFields fields) throws IOException {
        write(
                writer -> {
                    try (JsonGenerator json = Json.generator(writer, new DefaultPrettyPrinter())) {
                        json.writeStartObject();
                        fields.write(json);
                        json.writeEndObject();
                    }
                    writer.write('\n');
                });
    }
}
