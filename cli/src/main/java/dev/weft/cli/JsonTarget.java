package dev.weft.cli;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * Where {@code --json} writes: nowhere, standard output, or a file that is there whole or not at
 * all.
 */
public final class JsonTarget {

    private final String target;
    private final PrintWriter out;

    /** What is written. */
    @FunctionalInterface
    public interface Content {
        void write(JsonGenerator json) throws IOException;
    }

    /**
     * @param target the option's value, or null
     */
    public JsonTarget(String target, PrintWriter out) {
        this.target = target;
        this.out = out;
        if (target == null || toStandardOutput()) {
            return;
        }
        Path file = Path.of(target).toAbsolutePath();
        if (!isUsable(file.getParent()) || Files.exists(file) && !Files.isRegularFile(file)) {
            throw new UsageException(
                    "--json "
                            + target
                            + ": expected a file in a folder that exists and can be written to,"
                            + " or -");
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
            write(content, out);
            out.flush();
            return;
        }
        Path file = Path.of(target).toAbsolutePath();
        Path part = file.resolveSibling(file.getFileName() + ".part");
        try {
            try (Writer writer = Files.newBufferedWriter(part)) {
                write(content, writer);
            }
            Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(part);
        }
    }

    private static void write(Content content, Writer writer) throws IOException {
        try (JsonGenerator json = new JsonFactory().createGenerator(writer)) {
            json.disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET);
            json.setPrettyPrinter(new DefaultPrettyPrinter());
            json.writeStartObject();
            content.write(json);
            json.writeEndObject();
        }
        writer.write('\n');
    }
}
