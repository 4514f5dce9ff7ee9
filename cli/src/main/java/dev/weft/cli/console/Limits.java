package dev.weft.cli.console;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Names the limit of this process that an error comes from, if its text shows that. */
final class Limits {

    private static final List<String> FILES = List.of("Too many open files", "spawn helper");
    private static final List<String> THREADS =
            List.of("Resource temporarily unavailable", "unable to create native thread");

    private Limits() {}

    /** What to add to the text: the limit and its value, or nothing. */
    static String hint(String text) {
        if (text.contains("ulimit")) {
            // Already named, by the rank whose error this is.
            return "";
        }
        if (FILES.stream().anyMatch(text::contains)) {
            return ": the limit of open files (ulimit -n) is " + value("Max open files");
        }
        if (THREADS.stream().anyMatch(text::contains)) {
            return ": the limit of processes and threads (ulimit -u) is %s, that of the cgroup %s"
                    .formatted(value("Max processes"), cgroup());
        }
        return "";
    }

    /** The soft limit; if it cannot be read, as without a file handle, that it is too small. */
    private static String value(String name) {
        try {
            return Files.readString(Path.of("/proc/self/limits"))
                    .lines()
                    .filter(line -> line.startsWith(name))
                    .map(line -> line.substring(name.length()).strip().split("\\s+")[0])
                    .findFirst()
                    .orElse("too small");
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no limits", e);
            return "too small";
        }
    }

    private static String cgroup() {
        try {
            return "(pids.max) " + Files.readString(Path.of("/sys/fs/cgroup/pids.max")).strip();
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no cgroup", e);
            return "(pids.max) unknown";
        }
    }
}
