package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLibrariesTest {

    private static final List<String> NAMES = List.of("libweftprobe.so.13", "libweftprobe.so");

    @TempDir private Path root;

    private final Map<String, String> properties = new HashMap<>();
    private final Map<String, String> environment = new HashMap<>();

    private NativeLibraries libraries() {
        return new NativeLibraries(properties::get, environment::get, root);
    }

    private Path folder(String path) throws IOException {
        return Files.createDirectories(root.resolve(path));
    }

    /** A library that every JDK has and that needs nothing but libc. */
    private static void putLibrary(Path file) throws IOException {
        Files.copy(Path.of(System.getProperty("java.home"), "lib", "libsyslookup.so"), file);
    }

    private String failureOf(String property, List<String> names) {
        NativeLibraries libraries = libraries();
        return assertThrows(
                        IllegalArgumentException.class, () -> libraries.load(property, names, true))
                .getMessage();
    }

    @Test
    void foldersComeInTheOrderToolkitThenPythonTheHighestVersionFirst() throws IOException {
        Path python = folder("opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib");
        folder("opt/torch/.venv/lib/python3.12/site-packages/nvidia/nccl");
        folder("opt/plain");
        Path older = folder("usr/local/cuda-12.8/lib64");
        Path newer = folder("usr/local/cuda-13.0/lib64");
        Path usual = folder("usr/local/cuda/lib64");
        Path path = folder("elsewhere/path/lib64");
        Path home = folder("elsewhere/home/lib64");
        Path active = folder("venv/lib/python3.11/site-packages/nvidia/cublas/lib");
        environment.put("CUDA_PATH", path.getParent().toString());
        environment.put("CUDA_HOME", home.getParent().toString());
        environment.put("VIRTUAL_ENV", root.resolve("venv").toString());
        List<String> unreadable = new ArrayList<>();
        assertEquals(
                List.of(home, path, usual, newer, older, active, python),
                libraries().folders(unreadable));
        assertEquals(List.of(), unreadable);
    }

    @Test
    void aFolderNamedTwiceIsLookedAtOnce() throws IOException {
        Path usual = folder("usr/local/cuda/lib64");
        environment.put("CUDA_HOME", usual.getParent().toString());
        environment.put("CUDA_PATH", "");
        assertEquals(List.of(usual), libraries().folders(new ArrayList<>()));
    }

    @Test
    void theLoadersPathComesBeforeAnyFolder() throws IOException {
        Files.writeString(folder("usr/local/cuda/lib64").resolve("libc.so.6"), "no library");
        List<String> names = List.of("libweftprobe.so", "libc.so.6");
        assertTrue(libraries().load("weft.cuda.probe", names, true).find("abs").isPresent());
    }

    @Test
    void theFirstFileThatLoadsIsTaken() throws IOException {
        Files.writeString(folder("usr/local/cuda/lib64").resolve(NAMES.get(0)), "no library");
        putLibrary(folder("usr/local/cuda-13.0/lib64").resolve(NAMES.get(1)));
        assertTrue(libraries().load("weft.cuda.probe", NAMES, true).find("abs").isPresent());
        assertThrows(
                IllegalArgumentException.class,
                () -> libraries().load("weft.cuda.probe", NAMES, false));
    }

    @Test
    void theFailureTellsEverythingTried() throws IOException {
        Path bad = folder("usr/local/cuda/lib64").resolve(NAMES.get(0));
        Files.writeString(bad, "no library");
        Path empty = folder("usr/local/cuda-13.0/lib64");
        assertEquals(
                "cannot load libweftprobe.so.13 or libweftprobe.so from the library path nor from "
                        + bad.getParent()
                        + ", "
                        + bad
                        + " (does not load), "
                        + empty,
                failureOf("weft.cuda.probe", NAMES));
    }

    @Test
    void aFileThatTheUserNamesIsTheOnlyOneTried() throws IOException {
        Path named = root.resolve("named.so");
        environment.put("WEFT_PROBE", named.toString());
        List<String> loadable = List.of("libc.so.6");
        assertEquals(named + ": no such file", failureOf("weft.cuda.probe", loadable));
        Files.writeString(named, "no library");
        assertEquals(
                named + ": not a library that loads here", failureOf("weft.cuda.probe", loadable));
        Path better = root.resolve("better.so");
        putLibrary(better);
        properties.put("weft.cuda.probe", better.toString());
        assertTrue(libraries().load("weft.cuda.probe", NAMES, true).find("abs").isPresent());
    }
}
