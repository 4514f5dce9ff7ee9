package dev.weft.stress;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/**
 * The command itself, run with a folder of its own for data and one for shared memory, so that what
 * it leaves behind can be seen. Used by one thread.
 */
final class CommandRun implements AutoCloseable {

    private static final long PATIENCE_SECONDS = 60;

    private final Path shared;
    private final Path data;
    private final Process process;
    private final Queue<String> lines = new ConcurrentLinkedQueue<>();
    private final Set<ProcessHandle> started = new HashSet<>();
    private final Thread reader;

    /**
     * @param wrapper what the command is started by, or nothing
     */
    CommandRun(Path shared, Path data, List<String> wrapper, List<String> arguments) {
        this.shared = shared;
        this.data = data;
        List<String> command = new ArrayList<>(wrapper);
        command.addAll(
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m",
                        "-XX:TieredStopAtLevel=1",
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules",
                        "jdk.incubator.vector"));
        String home = System.getProperty("weft.home");
        if (home != null) {
            command.add("-Dweft.home=" + home);
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "dev.weft.cli.Main"));
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("WEFT_SHM_DIR", shared.toString());
        try {
            process = builder.start();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot start the command: " + e.getMessage(), e);
        }
        reader = Thread.ofPlatform().daemon().start(this::read);
    }

    private void read() {
        try (BufferedReader output = process.inputReader()) {
            output.lines().forEach(lines::add);
        } catch (IOException | UncheckedIOException e) {
            lines.add("reading failed: " + e.getMessage());
        }
    }

    /** Returns when a line with this text has come, or false when none will. */
    boolean awaitLine(String text) {
        return await(() -> lines.stream().anyMatch(line -> line.contains(text)));
    }

    /** The processes that it has started, once there are so many. */
    List<ProcessHandle> awaitChildren(int count) {
        await(() -> process.descendants().count() >= count);
        List<ProcessHandle> children = process.descendants().toList();
        started.addAll(children);
        return children;
    }

    private boolean await(BooleanSupplier condition) {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (!condition.getAsBoolean()) {
            if (!process.isAlive() && !reader.isAlive() || System.nanoTime() > until) {
                return condition.getAsBoolean();
            }
            LockSupport.parkNanos(2_000_000);
        }
        return true;
    }

    boolean isAlive() {
        return process.isAlive();
    }

    void signal(int signal) {
        process.descendants().forEach(started::add);
        Signals.send(process.pid(), signal);
    }

    /** The exit code, or -1 where it does not end. */
    int awaitExit() {
        try {
            if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                return -1;
            }
            reader.join(TimeUnit.SECONDS.toMillis(5));
            return process.exitValue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return -1;
        }
    }

    /** The first line that the command has to say of its failure, or nothing. */
    String message() {
        return lines.stream().filter(line -> line.startsWith("weft: ")).findFirst().orElse("");
    }

    String output() {
        return String.join("\n", lines);
    }

    /**
     * Processes, shared memory and halves of files that are still there, after a moment's grace.
     */
    List<String> leftovers(long graceMs) {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(graceMs);
        List<String> left = look();
        while (!left.isEmpty() && System.nanoTime() < until) {
            LockSupport.parkNanos(20_000_000);
            left = look();
        }
        return left;
    }

    private List<String> look() {
        List<String> left = new ArrayList<>();
        started.stream()
                .filter(ProcessHandle::isAlive)
                .forEach(child -> left.add("process " + child.pid() + " still runs"));
        list(shared).forEach(file -> left.add(file + " is still there"));
        list(data).stream()
                .filter(file -> file.toString().endsWith(".part"))
                .forEach(file -> left.add(file + " is half a file"));
        return left;
    }

    private static List<Path> list(Path folder) {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(folder)) {
            return files.toList();
        } catch (IOException | UncheckedIOException e) {
            return List.of();
        }
    }

    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        started.forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }
}
