package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A program that a test starts, most often the command in a JVM of its own. What it prints goes to
 * files of a folder. Closing kills it and all that it has started.
 */
public final class ChildProcess implements AutoCloseable {

    public static final long LIMIT_SECONDS = 180;

    /** The launcher script of this clone, which runs what this build has made. */
    public static final Path SCRIPT =
            Path.of(System.getProperty("weft.home", ".."), "weft").toAbsolutePath().normalize();

    /** The least that a run can do, where a test looks at something else. */
    public static final String SMALL = "--gm 48 --gk 32 --gn 16 --algorithm ring --engine scalar ";

    public static final String SHORT = SMALL + "--warmup 1 --iterations 2 ";
    public static final String ENDLESS = SMALL + "--iterations 1000000 ";

    private static final String LITTLE_COMPILED = "-XX:TieredStopAtLevel=1";

    /** Short lives do not pay for code that is compiled well. */
    private static final List<String> CHEAP =
            List.of(LITTLE_COMPILED, "-XX:+UseSerialGC", "-XX:-UsePerfData");

    private static final String JARS = classPath(Files::isRegularFile);

    /** Folders come last, or Java would not use the cache. */
    public static final String CLASS_PATH =
            JARS + File.pathSeparator + classPath(Files::isDirectory);

    private final Process process;
    private final Path out;
    private final Path err;

    private ChildProcess(Process process, Path out, Path err) {
        this.process = process;
        this.out = out;
        this.err = err;
    }

    /** What is to be started, and how. */
    public static final class Setup {

        private final Path folder;
        private final ProcessBuilder builder;
        private ProcessBuilder.Redirect output;

        private Setup(Path folder, List<String> command) {
            this.folder = folder;
            builder = new ProcessBuilder(new ArrayList<>(command));
            environment("WEFT_SKIP_BUILD", "1").javaOptions();
        }

        /** Another program that starts this one: its words come first. */
        public Setup under(List<String> launcher) {
            builder.command().addAll(0, launcher);
            return this;
        }

        /** In a shell that sees to something before it becomes this program. */
        public Setup after(String shell) {
            return under(List.of("sh", "-c", shell + "; exec \"$0\" \"$@\""));
        }

        /** A shell that starts tests in the background has them, and what they start, ignore ^C. */
        public Setup interruptible() {
            return under(List.of("env", "--default-signal=INT"));
        }

        public Setup environment(String name, Object value) {
            builder.environment().put(name, value.toString());
            return this;
        }

        /** More options for the Java that the script starts. */
        public Setup javaOptions(String... more) {
            List<String> all = new ArrayList<>(CHEAP);
            all.addAll(List.of(more));
            return environment("WEFT_JAVA_OPTS", String.join(" ", all));
        }

        /** For who multiplies with vectors, which are slow until they are compiled well. */
        public Setup wellCompiled() {
            builder.command().remove(LITTLE_COMPILED);
            return this;
        }

        /** Runs in the folder, not where the tests run. */
        public Setup inFolder() {
            builder.directory(folder.toFile());
            return this;
        }

        public Setup to(ProcessBuilder.Redirect where) {
            output = where;
            return this;
        }

        public ProcessBuilder builder() {
            return builder;
        }

        public ChildProcess start() throws IOException {
            Path out = Files.createTempFile(folder, "out-", ".txt");
            Path err = Files.createTempFile(folder, "err-", ".txt");
            builder.redirectOutput(
                    output == null ? ProcessBuilder.Redirect.to(out.toFile()) : output);
            return new ChildProcess(builder.redirectError(err.toFile()).start(), out, err);
        }

        /** Starts it and waits for its end. */
        public ChildProcess run() throws IOException, InterruptedException {
            ChildProcess child = start();
            child.code();
            return child;
        }
    }

    public static Setup of(Path folder, List<String> command) {
        return new Setup(folder, command);
    }

    /** The command; {@code arguments} are split at blanks. */
    public static Setup weft(Path folder, String arguments) {
        return weft(folder, List.of(arguments.split(" ")));
    }

    public static Setup weft(Path folder, List<String> arguments) {
        return java(folder, Main.class.getName(), arguments);
    }

    /** A main class of the tests, or a source file. */
    public static Setup java(Path folder, String main, List<String> arguments) {
        List<String> command = java();
        command.add(main);
        command.addAll(arguments);
        return of(folder, command);
    }

    /** The words that start Java with the classes of the tests. */
    public static List<String> java() {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(CHEAP);
        command.add("--enable-native-access=ALL-UNNAMED");
        command.addAll(AotCache.OPTIONS);
        command.addAll(List.of("-cp", CLASS_PATH));
        return command;
    }

    private static String classPath(Predicate<Path> wanted) {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> wanted.test(Path.of(entry)))
                .collect(Collectors.joining(File.pathSeparator));
    }

    /** The command's classes as Java has loaded and linked them, which the launcher has as well. */
    private static final class AotCache {

        static final List<String> OPTIONS = write();

        /** None where the classes are not in jars: Java makes such a cache of jars alone. */
        private static List<String> write() {
            Path file = Path.of("target", "children.aot").toAbsolutePath();
            List<String> command = new ArrayList<>();
            command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
            command.addAll(CHEAP);
            command.add("--enable-native-access=ALL-UNNAMED");
            command.addAll(List.of("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTRecordTraining"));
            command.add("-XX:AOTCacheOutput=" + file);
            command.addAll(List.of("-cp", JARS, Main.class.getName()));
            command.addAll(List.of("run", "--data-dir", file + "-data"));
            command.addAll(List.of(SHORT.split(" ")));
            try {
                Files.deleteIfExists(file);
                new ProcessBuilder(command)
                        .redirectErrorStream(true)
                        .redirectOutput(new File(file + ".log"))
                        .start()
                        .waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
            } catch (IOException | InterruptedException e) {
                throw new AssertionError(e);
            }
            return Files.exists(file)
                    ? List.of("-XX:AOTCache=" + file, "-Xlog:aot*=off,cds*=off")
                    : List.of();
        }
    }

    public Process process() {
        return process;
    }

    public long pid() {
        return process.pid();
    }

    /** Waits for its end and returns its exit code. */
    public int code() throws InterruptedException {
        boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
        close();
        assertTrue(ended, () -> "the process hangs: " + this);
        return process.exitValue();
    }

    public String out() {
        return read(out);
    }

    public String err() {
        return read(err);
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The one line with which Weft tells what is wrong, whatever others have said. */
    public String complaint() {
        List<String> said = err().lines().filter(line -> line.startsWith("weft: ")).toList();
        assertEquals(1, said.size(), this::toString);
        return said.getFirst();
    }

    /** Looks again and again while the process lives. */
    public void await(Callable<Boolean> condition) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (!condition.call()) {
            assertTrue(process.isAlive() && System.nanoTime() < until, this::toString);
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    /** The Java process of a rank, once {@code reached} holds as well. */
    public ProcessHandle awaitRank(int rank, Callable<Boolean> reached) throws Exception {
        await(() -> rank(rank) != null && reached.call());
        return rank(rank);
    }

    private ProcessHandle rank(int rank) {
        return process.descendants()
                .filter(child -> child.info().command().orElse("").endsWith("/java"))
                .filter(child -> isRank(child, rank))
                .findFirst()
                .orElse(null);
    }

    /** Whoever started it has put its number into its environment. */
    public static boolean isRank(ProcessHandle process, int rank) {
        return environment(process).stream()
                .anyMatch(v -> v.matches("(WEFT|OMPI_COMM_WORLD|PMI)_RANK=" + rank));
    }

    /** Of another process; empty where it is gone, or is just becoming another program. */
    public static List<String> environment(ProcessHandle process) {
        try {
            Path file = Path.of("/proc", Long.toString(process.pid()), "environ");
            return List.of(Files.readString(file).split("\0"));
        } catch (IOException e) {
            return List.of();
        }
    }

    public static void awaitEnd(List<ProcessHandle> processes) throws Exception {
        for (ProcessHandle process : processes) {
            process.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    /** By the name of the signal; a negative number is a group of processes. */
    public static void signal(String name, long... pids) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("kill", "-" + name, "--"));
        for (long pid : pids) {
            command.add(Long.toString(pid));
        }
        assertEquals(0, new ProcessBuilder(command).start().waitFor(), command.toString());
    }

    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    /** All that is known of it, for messages. */
    @Override
    public String toString() {
        String end = process.isAlive() ? "running" : "exit code " + process.exitValue();
        return "%s, out: %s, err: %s".formatted(end, out(), err());
    }
}
