package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A job goes on while the launcher builds anew: the launcher in a clone of its own, whose Maven
 * only copies the jars of this build, when the test lets it.
 */
class RebuildIT {

    private static final Path JAVA_HOME = Path.of(System.getProperty("java.home"));
    private static final Path CLONE = Path.of("").toAbsolutePath().getParent();

    private static final String MAVEN =
            """
            #!/bin/sh
            : >"$STUB/building"
            i=0
            until [ -f "$STUB/go-on" ] || [ $i -ge 1200 ]; do
                sleep 0.1
                i=$((i + 1))
            done
            mkdir -p "$STUB/clone/cli/target"
            cp "$JARS"/weft-cli-*.jar "$STUB/clone/cli/target"
            cp -R "$JARS/lib" "$STUB/clone/cli/target/lib"
            mkdir -p "$STUB/clone/compat/target" "$STUB/clone/bench/target"
            # Any jar will do.
            cp "$JARS"/lib/picocli-*.jar "$STUB/clone/compat/target/weft-compat-0.jar"
            cp "$JARS"/lib/picocli-*.jar "$STUB/clone/bench/target/weft-bench-0.jar"
            """;

    /** Writes no AOT cache, which takes some seconds for every build. */
    private static final String JAVA =
            """
            #!/bin/sh
            case "$*" in
                *AOTCacheOutput*) exit 1 ;;
            esac
            exec "$REAL_JAVA" "$@"
            """;

    @TempDir Path stub;

    private Path clone;
    private final List<ChildProcess> started = new ArrayList<>();

    @BeforeEach
    void makeClone() throws IOException {
        assumeTrue(Files.exists(Path.of("/proc/self/cmdline")), "Linux alone tells");
        assumeTrue(Files.isDirectory(CLONE.resolve("cli/target/lib")), "the jars are not built");
        clone = Files.createDirectory(stub.resolve("clone"));
        Files.createDirectory(clone.resolve("scripts"));
        copy("weft");
        try (Stream<Path> scripts = Files.list(CLONE.resolve("scripts"))) {
            for (Path script : scripts.toList()) {
                copy("scripts/" + script.getFileName());
            }
        }
        Files.createFile(clone.resolve("pom.xml"));
        for (String module : List.of("library", "cli", "compat", "bench")) {
            Files.createDirectories(clone.resolve(module).resolve("src/main"));
            Files.createFile(clone.resolve(module).resolve("pom.xml"));
        }
        program("bin/mvn", MAVEN);
        program("jdk/bin/java", JAVA);
        program("jdk/bin/javac", "");
        Files.copy(JAVA_HOME.resolve("release"), stub.resolve("jdk/release"));
    }

    private void program(String name, String text) throws IOException {
        Path file = stub.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
        assertTrue(file.toFile().setExecutable(true));
    }

    private void copy(String file) throws IOException {
        Files.copy(CLONE.resolve(file), clone.resolve(file));
    }

    @AfterEach
    void endAll() {
        started.forEach(ChildProcess::close);
    }

    private ChildProcess weft(String arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(clone.resolve("weft").toString()));
        command.addAll(List.of(arguments.split(" ")));
        ChildProcess.Setup setup = ChildProcess.of(stub, command);
        Map<String, String> environment = setup.builder().environment();
        environment.keySet().removeIf(variable -> variable.startsWith("WEFT_"));
        setup.environment("STUB", stub)
                .environment("JARS", CLONE.resolve("cli/target"))
                .environment("PATH", stub.resolve("bin") + ":" + environment.get("PATH"))
                .environment("JAVA_HOME", stub.resolve("jdk"))
                .environment("REAL_JAVA", JAVA_HOME.resolve("bin/java"))
                .javaOptions();
        started.add(setup.start());
        return started.getLast();
    }

    private static void assertEnds(ChildProcess process) throws Exception {
        assertEquals(0, process.code(), process::toString);
    }

    /** The launcher has become Java, which has yet to open its jars and to start ranks. */
    private static void awaitJava(ChildProcess job) throws Exception {
        Path command = Path.of("/proc", Long.toString(job.pid()), "cmdline");
        job.await(() -> Files.readString(command).contains("dev.weft.cli.Main"));
    }

    private static int run(String... command) throws Exception {
        return new ProcessBuilder(command).inheritIO().start().waitFor();
    }

    private List<Path> copies() throws IOException {
        try (Stream<Path> files = Files.list(clone.resolve("build"))) {
            return files.filter(f -> f.getFileName().toString().startsWith("app-")).toList();
        }
    }

    @Test
    void aJobEndsWellWhileTheJarsAreBuiltAnew() throws Exception {
        Files.createFile(stub.resolve("go-on"));
        assertEnds(weft("--version"));
        List<Path> before = copies();

        Path json = stub.resolve("record.json");
        ChildProcess job =
                weft(
                        "run --launcher processes -n 2 "
                                + ChildProcess.SMALL
                                + "--iterations 20 --data-dir "
                                + stub.resolve("out")
                                + " --json "
                                + json);
        awaitJava(job);
        ChildProcess.signal("STOP", job.pid());

        Files.delete(stub.resolve("go-on"));
        Files.delete(stub.resolve("building"));
        Files.setLastModifiedTime(clone.resolve("cli/pom.xml"), FileTime.from(Instant.now()));
        ChildProcess rebuild = weft("--version");
        rebuild.await(() -> Files.exists(stub.resolve("building")));
        for (Path copy : before) {
            String lock = copy.resolve("lock").toString();
            assertEquals(1, run("flock", "-n", lock, "true"), "the job holds its copy");
        }
        ChildProcess.signal("CONT", job.pid());
        assertEnds(job);
        assertTrue(Files.readString(json).contains("\"passed\" : true"));

        Files.createFile(stub.resolve("go-on"));
        assertEnds(rebuild);
        assertEquals(1, before.size());
        assertEquals(1, copies().size(), "what nobody runs from is removed");
        assertNotEquals(before, copies());
    }
}
