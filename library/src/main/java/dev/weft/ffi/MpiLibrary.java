package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * An MPI library that has been loaded and recognised. A library that the user has named is the only
 * one that is tried; otherwise it is of the family whose launcher started this process, or of any
 * if there was no launcher: a process that loads the other family's library would be in a world
 * alone. The loader's path comes first, then the usual folders. Thread-safe.
 *
 * <p>The JVM owns SIGSEGV, SIGBUS, SIGFPE and SIGHUP: compiled code runs into the first on purpose,
 * and a library that took them over would end the process at the first null pointer. So before
 * loading, libraries that MPI may load are told to leave signals alone, unless the user has set
 * that otherwise.
 *
 * @param version the first line of its version text
 */
record MpiLibrary(MpiFamily family, String version, SymbolLookup symbols) {

    static final String PROPERTY = "weft.mpi.library";
    static final String VARIABLE = "WEFT_MPI_LIBRARY";

    private static final String GET_VERSION = "MPI_Get_library_version";

    /** Twice the longest text that any family's header announces. */
    private static final int VERSION_BYTES = 16384;

    /**
     * @param given file or name of a library, or null if the user has named none
     * @throws IllegalArgumentException with one line that says what was found and what is needed
     */
    static MpiLibrary load(String given, Map<String, String> environment) {
        keepSignals();
        sendEagerly();
        if (given != null) {
            return named(given);
        }
        Optional<MpiFamily> launcher = MpiEnvironment.of(environment).family();
        List<String> tried = new ArrayList<>();
        for (MpiFamily family : launcher.map(List::of).orElse(List.of(MpiFamily.values()))) {
            for (String candidate : candidates(family, environment)) {
                try {
                    MpiLibrary found = recognise(candidate, open(candidate));
                    if (found.family == family) {
                        return found;
                    }
                    tried.add(candidate + " is \"" + found.version + "\"");
                } catch (IllegalArgumentException e) {
                    tried.add(e.getMessage());
                }
            }
        }
        throw new IllegalArgumentException(
                "found no library of "
                        + launcher.map(f -> f.supported() + ", whose launcher started this process")
                                .orElse(supported())
                        + "; tried "
                        + String.join(", ", tried)
                        + "; looked in the loader's path"
                        + folders(environment).stream()
                                .filter(Files::isDirectory)
                                .map(folder -> ", " + folder)
                                .collect(Collectors.joining()));
    }

    long handle(MpiFamily.Handle which) {
        return family.handle(which, symbols);
    }

    private static MpiLibrary named(String given) {
        if (given.contains("/") && !Files.isRegularFile(Path.of(given))) {
            throw new IllegalArgumentException(given + ": no such file");
        }
        try {
            return recognise(given, open(given));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(e.getMessage() + ", expected " + supported(), e);
        }
    }

    private static void keepSignals() {
        NativeLibraries.setUnlessSet("UCX_ERROR_SIGNALS", "");
        // On SIGHUP, at which the JVM ends cleanly, UCX would wait for a debugger.
        NativeLibraries.setUnlessSet("UCX_DEBUG_SIGNO", "0");
        // By default UCX writes over the first instructions of the C library's functions, while
        // other threads of the JVM call them: on a busy aarch64, starts of MPICH 4.0.2 died of
        // that.
        // Its other way (reloc) replaces malloc as well, and hung every start.
        NativeLibraries.setUnlessSet("UCX_MEM_MMAP_HOOK_MODE", "none");
        NativeLibraries.setUnlessSet("OMPI_MCA_opal_signal", "");
        NativeLibraries.setUnlessSet("HFI_NO_BACKTRACE", "1");
        NativeLibraries.setUnlessSet("IPATH_NO_BACKTRACE", "1");
    }

    /**
     * Lets messages of up to 256 KiB be sent eagerly over TCP, without a handshake. A handshake
     * would queue up behind what the receiver sends itself, so that two hosts that send to each
     * other would take turns.
     */
    private static void sendEagerly() {
        NativeLibraries.setUnlessSet("OMPI_MCA_btl_tcp_eager_limit", "262144");
        NativeLibraries.setUnlessSet("OMPI_MCA_btl_tcp_rndv_eager_limit", "262144");
    }

    /** Plain names for the loader, then the files that there are. */
    private static List<String> candidates(MpiFamily family, Map<String, String> environment) {
        List<String> candidates = new ArrayList<>(family.files());
        for (Path folder : folders(environment)) {
            family.files().stream()
                    .map(folder::resolve)
                    .filter(Files::isRegularFile)
                    .map(Path::toString)
                    .forEach(candidates::add);
        }
        return candidates;
    }

    /** The usual folders, whether they exist or not. */
    static List<Path> folders(Map<String, String> environment) {
        List<Path> folders = new ArrayList<>();
        for (String variable : List.of("MPI_HOME", "OPAL_PREFIX")) {
            String home = environment.getOrDefault(variable, "");
            if (!home.isEmpty()) {
                folders.add(Path.of(home, "lib"));
            }
        }
        String arch = System.getProperty("os.arch").replace("amd64", "x86_64");
        folders.add(Path.of("/usr/lib", arch + "-linux-gnu"));
        folders.add(Path.of("/usr/lib", arch + "-linux-gnu", "openmpi", "lib"));
        folders.add(Path.of("/usr/lib64/openmpi/lib"));
        folders.add(Path.of("/usr/lib64/mpich/lib"));
        folders.add(Path.of("/usr/local/lib"));
        if (Files.isReadable(Path.of("/opt"))) {
            try (Stream<Path> packages = Files.list(Path.of("/opt"))) {
                packages.sorted().forEach(home -> folders.add(home.resolve("lib")));
            } catch (IOException e) {
                throw new UncheckedIOException("/opt cannot be listed", e);
            }
        }
        return folders;
    }

    private static SymbolLookup open(String candidate) {
        try {
            return candidate.contains("/")
                    ? NativeLibraries.open(Path.of(candidate))
                    : NativeLibraries.open(candidate);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(candidate + " does not load", e);
        }
    }

    private static MpiLibrary recognise(String candidate, SymbolLookup symbols) {
        if (symbols.find(GET_VERSION).isEmpty()) {
            throw new IllegalArgumentException(candidate + " is no MPI library");
        }
        String version = version(symbols);
        for (MpiFamily family : MpiFamily.values()) {
            if (family.isNamedBy(version) && family.isBoundBy(symbols)) {
                return new MpiLibrary(family, version, symbols);
            }
        }
        throw new IllegalArgumentException(candidate + " is \"" + version + "\"");
    }

    /** MPI allows this call before all others. */
    private static String version(SymbolLookup symbols) {
        NativeFunction function =
                BoundLibrary.load("MPI", "", String::valueOf, () -> symbols)
                        .function(GET_VERSION, "PP");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(VERSION_BYTES);
            int code = function.call(text.address(), arena.allocate(JAVA_INT).address());
            return code == 0 ? firstLine(text.getString(0)) : GET_VERSION + ": " + code;
        }
    }

    static String firstLine(String text) {
        return text.lines().findFirst().orElse("").strip().replaceAll("\\s+", " ");
    }

    private static String supported() {
        return Arrays.stream(MpiFamily.values())
                .map(MpiFamily::supported)
                .collect(Collectors.joining(" or "));
    }
}
