package dev.weft.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** What the system calls its processor. */
final class Processor {

    private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

    private Processor() {}

    /** The model's name, or {@code unknown} where the system does not tell. */
    static String name() throws IOException {
        if (!Files.isReadable(CPU_INFO)) {
            return "unknown";
        }
        try (Stream<String> lines = Files.lines(CPU_INFO)) {
            return lines.filter(line -> line.startsWith("model name"))
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .findFirst()
                    .orElse("unknown");
        }
    }
}
