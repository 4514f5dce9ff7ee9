package dev.weft.stress;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
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

    private static final long TIMEOUT_SECONDS = 60;

    /** What Java takes to start and a rank to prepare. */
    private static final Duration STARTED = Duration.ofMillis(2_500);

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
                        "--enable-native-access=ALL-UNNAMED"));
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
        return await(() -> hasPrinted(text));
    }

    /** The processes that it has started, once there are so many. */
    List<ProcessHandle> awaitChildren(int count) {
        await(() -> process.descendants().count() >= count);
        List<ProcessHandle> children = process.descendants().toList();
        started.addAll(children);
        return children;
    }

    /** Returns when it holds, or false when it will not. */
    boolean await(BooleanSupplier condition) {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        while (!condition.getAsBoolean()) {
            if (!process.isAlive() && !reader.isAlive() || System.nanoTime() > until) {
                return condition.getAsBoolean();
            }
            LockSupport.parkNanos(2_000_000);
        }
        return true;
    }

    long pid() {
        return process.pid();
    }

    boolean hasPrinted(String text) {
        return lines.stream().anyMatch(line -> line.contains(text));
    }

    /** Its ranks: processes of Java below it, or itself where they are its threads. */
    List<ProcessHandle> ranks(String launcher) {
        return launcher.equals("threads") ? List.of() : javaProcesses();
    }

    private List<ProcessHandle> javaProcesses() {
        return process.descendants()
                .filter(child -> child.info().command().orElse("").endsWith("/java"))
                .toList();
    }

    /** Whether its ranks, or its threads, have been computing for a while. */
    boolean hasRanksAtWork() {
        List<ProcessHandle> ranks = javaProcesses();
        return ranks.isEmpty()
                ? hasComputed(process.toHandle())
                : ranks.size() >= 2 && ranks.stream().allMatch(CommandRun::hasComputed);
    }

    private static boolean hasComputed(ProcessHandle process) {
        return process.info().totalCpuDuration().orElse(Duration.ZERO).compareTo(STARTED) > 0;
    }

    ProcessHandle mpirun() {
        return process.children()
                .filter(child -> !child.info().command().orElse("").endsWith("/java"))
                .findFirst()
                .orElseThrow();
    }

    /** What it has started must be gone at the end. */
    void noteChildren() {
        process.descendants().forEach(started::add);
    }

    /** Open MPI's segments of shared memory. */
    static List<String> segments() {
        return list(Path.of("/dev/shm")).stream()
                .map(file -> file.getFileName().toString())
                .filter(name -> name.contains("_segment."))
                .toList();
    }

    static List<String> newSegments(List<String> before) {
        return segments().stream()
                .filter(name -> !before.contains(name))
                .map(name -> name + " is still there")
                .toList();
    }

    /** The exit code, or -1 where it does not end. */
    int awaitExit() {
        try {
            if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
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

    /** Waits for the end of what it has started, which may outlive it for a moment. */
    void awaitOrphans(long graceMs) {
        awaitWithin(graceMs, () -> started.stream().noneMatch(ProcessHandle::isAlive));
    }

    private static void awaitWithin(long graceMs, BooleanSupplier condition) {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(graceMs);
        while (!condition.getAsBoolean() && System.nanoTime() < until) {
            LockSupport.parkNanos(20_000_000);
        }
    }

    /**
     * Processes, shared memory and halves of files that are still there, after a moment's grace.
     */
    List<String> leftovers(long graceMs) {
        awaitWithin(graceMs, () -> look().isEmpty());
        return look();
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

    static List<Path> list(Path folder) {
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
