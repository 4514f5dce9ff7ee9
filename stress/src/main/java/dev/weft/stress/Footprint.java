package dev.weft.stress;

import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * What this process holds, between two cases: memory, handles, threads, and Weft's folders in
 * shared memory.
 *
 * @param heapBytes after a collection
 * @param residentBytes as the system counts it; 0 where it does not tell
 * @param handles open file handles; 0 where the system does not tell
 * @param sharedFolders of this user
 */
record Footprint(
        long heapBytes, long residentBytes, long handles, int threads, long sharedFolders) {

    static Footprint now() {
        System.gc();
        return new Footprint(
                ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
                resident(),
                count(Path.of("/proc/self/fd"), ""),
                ManagementFactory.getThreadMXBean().getThreadCount(),
                count(ShmJob.sharedMemory(), "weft-" + user() + "-"));
    }

    private static Object user() {
        try {
            return Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        } catch (IOException | UnsupportedOperationException e) {
            return System.getProperty("user.name");
        }
    }

    private static long resident() {
        Path status = Path.of("/proc/self/status");
        try (Stream<String> lines = Files.lines(status)) {
            return lines.filter(line -> line.startsWith("VmRSS:"))
                    .mapToLong(line -> 1024 * Long.parseLong(line.replaceAll("\\D", "")))
                    .findFirst()
                    .orElse(0);
        } catch (IOException | UncheckedIOException e) {
            return 0;
        }
    }

    private static long count(Path folder, String prefix) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.getFileName().toString().startsWith(prefix)).count();
        } catch (IOException | UncheckedIOException e) {
            return 0;
        }
    }
}
