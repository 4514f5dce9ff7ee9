package dev.weft.fabric;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * A Java process that runs a main class of the tests. A child that does not do in time what is
 * awaited is killed and fails the test with all it has printed; closing kills it too.
 */
public final class ChildJvm implements AutoCloseable {

    /** For those that multiply little: what they do pays for little compiled code. */
    public static final List<String> CHEAP = List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC");

    private static final long PATIENCE_SECONDS = 90;
    private static final String END = "\u0000end of output";

    private final Process process;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final Queue<String> all = new ConcurrentLinkedQueue<>();
    private final Thread reader;

    private ChildJvm(Process process) {
        this.process = process;
        reader = Thread.ofPlatform().daemon().name("child-" + process.pid()).start(this::read);
    }

    /** Starts {@code main} on this JVM's Java and classes. */
    public static ChildJvm start(Class<?> main, Map<String, String> environment, String... args) {
        return start(List.of(), List.of(), main, environment, args);
    }

    /**
     * The same under a launcher, which may start it more than once: the output of all comes
     * together, and what ends one ends all.
     *
     * @param options more of them for Java
     */
    public static ChildJvm start(
            List<String> launcher,
            List<String> options,
            Class<?> main,
            Map<String, String> environment,
            String... args) {
        List<String> command = new ArrayList<>(launcher);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xmx256m", "-ea"));
        command.add("--enable-native-access=ALL-UNNAMED");
        command.addAll(options);
        command.addAll(List.of("-cp", classPath(main), main.getName()));
        command.addAll(List.of(args));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        try {
            return new ChildJvm(builder.start());
        } catch (IOException e) {
            throw new UncheckedIOException("cannot start " + command, e);
        }
    }

    /** Works for tests on the class path and in a patched module alike. */
    private static String classPath(Class<?> main) {
        Set<String> entries = new LinkedHashSet<>();
        entries.add(rootOf(main));
        entries.add(rootOf(World.class));
        for (String property : List.of("java.class.path", "jdk.module.path")) {
            String path = System.getProperty(property, "");
            if (!path.isEmpty()) {
                entries.addAll(List.of(path.split(File.pathSeparator)));
            }
        }
        return String.join(File.pathSeparator, entries);
    }

    /** Works for tests on the class path and in a patched module alike. */
    public static String rootOf(Class<?> type) {
        String file = type.getName().replace('.', '/') + ".class";
        String url = String.valueOf(type.getResource("/" + file));
        if (url.startsWith("jar:")) {
            return Path.of(URI.create(url.substring(4, url.indexOf("!/")))).toString();
        }
        return Path.of(URI.create(url.substring(0, url.length() - file.length()))).toString();
    }

    private void read() {
        try (BufferedReader reader = process.inputReader()) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                all.add(line);
                lines.add(line);
            }
        } catch (IOException e) {
            all.add("reading failed: " + e);
        } finally {
            lines.add(END);
        }
    }

    /** The rest of the next line that starts with {@code prefix}. */
    public String awaitLine(String prefix) {
        try {
            for (String line = next(); line != null && !line.equals(END); line = next()) {
                if (line.startsWith(prefix)) {
                    return line.substring(prefix.length());
                }
            }
        } catch (InterruptedException e) {
            throw new AssertionError("interrupted", e);
        }
        kill();
        throw new AssertionError("no line with '" + prefix + "' came: " + all);
    }

    private String next() throws InterruptedException {
        return lines.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    /** Waits for the end, and for all that was printed before it. */
    public int exitCode() {
        try {
            if (process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                reader.join(TimeUnit.SECONDS.toMillis(1));
                return process.exitValue();
            }
        } catch (InterruptedException e) {
            throw new AssertionError("interrupted", e);
        }
        kill();
        throw new AssertionError("the process hung: " + all);
    }

    /** All lines so far. */
    public List<String> output() {
        return List.copyOf(all);
    }

    public long pid() {
        return process.pid();
    }

    /** All that the process has started, and what they have. */
    public List<ProcessHandle> descendants() {
        return process.descendants().toList();
    }

    /** Ends the input that the child may wait for. */
    public void endInput() {
        try {
            process.getOutputStream().close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** SIGKILL: the process has no say in it. Returns once it is gone. */
    public void kill() {
        List<ProcessHandle> descendants = descendants();
        process.destroyForcibly();
        descendants.forEach(ProcessHandle::destroyForcibly);
        boolean interrupted = false;
        while (process.isAlive()) {
            try {
                process.waitFor();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        kill();
    }
}
