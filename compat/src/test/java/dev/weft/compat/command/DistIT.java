package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.console.ExitCode;
import dev.weft.cuda.kernel.KernelVariants;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * {@code weft dist}, from the jars that are there, with a compiler for kernels that only copies;
 * and the packed folder, where programs are those that any Linux has: no Maven.
 */
class DistIT {

    private static final Path CLONE = Path.of("").toAbsolutePath().getParent();
    private static final Path JAVA_HOME = Path.of(System.getProperty("java.home"));
    private static final String COPYING_COMPILER =
            """
            #!/bin/sh
            while [ $# -gt 1 ]; do
                if [ "$1" = -o ]; then out=$2; fi
                shift
            done
            cp "$1" "$out"
            """;

    @TempDir static Path shared;

    private static Path programs;
    private static Path packed;

    @TempDir Path folder;

    @BeforeAll
    static void pack() throws Exception {
        assumeTrue(Files.isDirectory(CLONE.resolve("cli/target/lib")), "the jars are not built");
        programs = Files.createDirectory(shared.resolve("bin"));
        for (String name :
                ("awk bash cat cksum cp dirname env flock gzip mkdir mktemp mv readlink rm tar tr"
                                + " uname xz")
                        .split(" ")) {
            offer(name);
        }
        Path nvcc = program(shared.resolve("nvcc"), COPYING_COMPILER);
        packed = shared.resolve("packed");
        ChildProcess dist = dist(nvcc.toString(), "--out", packed.toString());
        if (dist.err().contains("Maven could not get")) {
            abort(dist.err());
        }
        assertEquals(0, dist.code(), dist.err());
    }

    private static void offer(String name) throws IOException {
        for (String place : System.getenv("PATH").split(File.pathSeparator)) {
            Path file = Path.of(place, name);
            if (Files.isExecutable(file)) {
                program(programs.resolve(name), "#!/bin/sh\nexec " + file + " \"$@\"\n");
                return;
            }
        }
    }

    private static Path program(Path file, String text) throws IOException {
        Files.writeString(file, text);
        assertTrue(file.toFile().setExecutable(true));
        return file;
    }

    /** Packs what is built; an empty {@code nvcc} stands for none. */
    private static ChildProcess dist(String nvcc, String... options) throws Exception {
        List<String> command = new ArrayList<>(List.of(CLONE.resolve("weft").toString(), "dist"));
        command.addAll(List.of(options));
        return ChildProcess.of(shared, command).environment("WEFT_NVCC", nvcc).run();
    }

    private static ChildProcess weft(Path home, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(home.resolve("weft").toString()));
        command.addAll(List.of(arguments));
        return ChildProcess.of(shared, command)
                .environment("PATH", programs)
                .environment("JAVA_HOME", JAVA_HOME)
                .run();
    }

    private static Set<String> names(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).collect(Collectors.toSet());
        }
    }

    @Test
    void theFolderHoldsEverything() throws Exception {
        // The command itself, and this module.
        assertEquals(names(CLONE.resolve("cli/target/lib")).size() + 2, names(lib()).size());
        assertTrue(names(lib()).containsAll(names(CLONE.resolve("cli/target/lib"))));
        assertTrue(
                names(packed.resolve("tests"))
                        .containsAll(
                                Set.of(
                                        "weft-tests.jar",
                                        "weft-cli-tests.jar",
                                        "weft-compat-tests.jar")));
        assertTrue(Files.isRegularFile(console()));
        Map<String, String> sources = KernelVariants.sources();
        Map<String, String> expected = new TreeMap<>();
        KernelVariants.ready()
                .forEach(key -> expected.put(key.fileName(sources), sources.get(key.source())));
        Map<String, String> kernels = new TreeMap<>();
        for (String name : names(packed.resolve("kernels"))) {
            kernels.put(name, Files.readString(packed.resolve("kernels").resolve(name)));
        }
        assertEquals(expected, kernels, "each source under the digest of its variants");
        assertNothingHalfWritten(shared);
    }

    private static Path lib() {
        return packed.resolve("lib");
    }

    private static Path console() throws IOException {
        try (Stream<Path> files = Files.list(packed.resolve("tests"))) {
            return files.filter(file -> file.getFileName().toString().startsWith("junit-platform"))
                    .findFirst()
                    .orElseThrow();
        }
    }

    private static void assertNothingHalfWritten(Path folder) throws IOException {
        assertEquals(
                List.of(),
                names(folder).stream()
                        .filter(name -> name.contains(".part-") || name.contains(".old-"))
                        .toList());
    }

    @Test
    void theFolderRunsWithoutMaven() throws Exception {
        ChildProcess version = weft(packed, "--version");
        assertEquals(0, version.code(), version.err());
        assertTrue(version.out().startsWith("weft "), version.out());
        ChildProcess dist = weft(packed, "dist");
        assertEquals(ExitCode.USAGE, dist.code());
        assertEquals("weft: 'weft dist' needs a clone: run ./weft dist there\n", dist.err());
        ChildProcess install = weft(packed, "install");
        assertEquals(ExitCode.USAGE, install.code());
        assertEquals(
                "weft: 'weft install' needs a clone: run ./weft install there\n", install.err());
        ChildProcess java = weft(packed, "java", "--version");
        assertEquals(0, java.code(), java.err());
        assertTrue(java.out().contains(" 25"), java.out());
        ChildProcess test = weft(packed, "test");
        assertEquals(ExitCode.USAGE, test.code());
        assertTrue(test.err().contains("expected ./weft test --gpu"), test.err());
        assertEquals(0, weft(packed, "test", "--help").code());
    }

    @Test
    void gpuTestsAreThoseWithTheTag() throws Exception {
        String source =
                """
                import org.junit.jupiter.api.*;
                class SmallTest {
                    @Tag("gpu") @Test void passes() {}
                    @Tag("gpu") @Test void skips() { Assumptions.abort("no <GPU> here"); }
                    %s
                    @Test void other() { throw new AssertionError("has no tag"); }
                }
                """;
        Path home = folder.resolve("home");
        copyPacked(home);
        writeTests(home, source.formatted(""));
        ChildProcess good = weft(home, "test", "--gpu");
        assertEquals(0, good.code(), good.out() + good.err());
        assertTrue(good.out().contains("SmallTest.skips(): no <GPU> here"), good.out());
        assertTrue(
                good.out().endsWith("\nTests run: 2, Failures: 0, Errors: 0, Skipped: 1\n"),
                good.out());

        writeTests(home, source.formatted("@Tag(\"gpu\") @Test void f() { Assertions.fail(); }"));
        ChildProcess bad = weft(home, "test", "--gpu");
        assertEquals(1, bad.code(), bad.out() + bad.err());
        assertTrue(
                bad.out().endsWith("\nTests run: 3, Failures: 1, Errors: 0, Skipped: 1\n"),
                bad.out());
    }

    private static ChildProcess run(String... command) throws Exception {
        return ChildProcess.of(shared, List.of(command)).run();
    }

    private static void copyPacked(Path home) throws Exception {
        ChildProcess copy = run("cp", "-R", packed.toString(), home.toString());
        assertEquals(0, copy.code(), copy.err());
    }

    /** Puts these tests in the place of all others. */
    private void writeTests(Path home, String source) throws IOException {
        Path file = Files.writeString(folder.resolve("SmallTest.java"), source);
        Path classes = folder.resolve("classes");
        tool("javac", "-cp", console().toString(), "-d", classes.toString(), file.toString());
        jar(home.resolve("tests/weft-tests.jar"), classes);
        Path empty = Files.createDirectories(folder.resolve("empty"));
        jar(home.resolve("tests/weft-cli-tests.jar"), empty);
        jar(home.resolve("tests/weft-compat-tests.jar"), empty);
    }

    private static void jar(Path jar, Path classes) {
        tool("jar", "--create", "--file", jar.toString(), "-C", classes.toString(), ".");
    }

    private static void tool(String name, String... arguments) {
        ToolProvider tool = ToolProvider.findFirst(name).orElseThrow();
        assertEquals(0, tool.run(System.out, System.err, arguments), name);
    }

    @Test
    void aRuntimeInAnArchiveIsUnpackedAtFirstUse() throws Exception {
        Path runtime = Files.createDirectories(folder.resolve("jre/bin"));
        Path used = folder.resolve("used");
        program(
                runtime.resolve("java"),
                "#!/bin/sh\n: >" + used + "\nexec " + JAVA_HOME.resolve("bin/java") + " \"$@\"\n");
        Files.copy(JAVA_HOME.resolve("release"), folder.resolve("jre/release"));
        Path archive = folder.resolve("jre.tar.gz");
        ChildProcess tar = run("tar", "-czf", archive.toString(), "-C", folder.toString(), "jre");
        assertEquals(0, tar.code(), tar.err());

        Path home = folder.resolve("home");
        ChildProcess dist = dist("", "--runtime", archive.toString(), "--out=" + home);
        assertEquals(0, dist.code(), dist.err());
        assertEquals(1, dist.err().lines().count(), dist.err());
        assertTrue(dist.err().contains("packed without ready kernels"), dist.err());
        assertFalse(Files.exists(home.resolve("kernels")));
        assertEquals(Set.of("jre.tar.gz"), names(home.resolve("runtime")));

        ChildProcess first = weft(home, "--version");
        assertEquals(0, first.code(), first.err());
        assertTrue(Files.exists(used), "the packed runtime comes before JAVA_HOME");
        assertTrue(first.err().contains("unpacking the Java runtime"), first.err());
        assertEquals("", weft(home, "--version").err());
    }

    @Test
    void aFailureLeavesWhatWasThere() throws Exception {
        Path home = folder.resolve("home");
        copyPacked(home);
        Files.writeString(home.resolve("mark"), "kept");
        Path nvcc =
                program(folder.resolve("nvcc"), "#!/bin/sh\necho 'x.cu(1): error: no'\nexit 2\n");
        ChildProcess failed = dist(nvcc.toString(), "--out", home.toString());
        assertEquals(ExitCode.FAILED, failed.code(), failed.err());
        assertEquals(1, failed.err().lines().count(), failed.err());
        assertTrue(failed.err().contains("failed: x.cu(1): error: no"), failed.err());
        assertEquals("kept", Files.readString(home.resolve("mark")));
        assertNothingHalfWritten(folder);

        ChildProcess replaced = dist("", "--out", home.toString());
        assertEquals(0, replaced.code(), replaced.err());
        assertFalse(Files.exists(home.resolve("mark")), "replaced as a whole");
        assertNothingHalfWritten(folder);
    }

    @Test
    void whatCannotBePackedIsRefused() throws Exception {
        Path foreign = Files.createDirectory(folder.resolve("foreign"));
        Files.writeString(foreign.resolve("mine"), "kept");
        assertRefused("was not packed by dist", "--out", foreign.toString());
        assertRefused("was not packed by dist", "--out", CLONE.toString());
        assertRefused("expected a folder with the bin/java", "--runtime", foreign.toString());
        assertRefused("no such file", "--runtime", folder.resolve("no.tar.xz").toString());
        assertRefused("--out of dist needs a value", "--out");
        assertRefused("unknown option --fast of dist", "--fast");
        assertEquals(Set.of("mine"), names(foreign));
    }

    private static void assertRefused(String expected, String... options) throws Exception {
        ChildProcess dist = dist("", options);
        assertEquals(ExitCode.USAGE, dist.code(), dist.err());
        assertEquals(1, dist.err().lines().count(), dist.err());
        assertTrue(dist.err().contains(expected), dist.err());
    }
}
