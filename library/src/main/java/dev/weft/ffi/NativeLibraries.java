package dev.weft.ffi;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;

/**
 * Where CUDA's libraries and OpenBLAS are looked for. A file that the user has named is the only
 * one that is tried; otherwise the loader's own path comes first, then the toolkit's folders, then
 * those of NVIDIA's Python packages. The search is bounded: it expands fixed patterns and walks no
 * tree. Thread-safe.
 *
 * <pre>
 * -Dweft.cuda.LIB=FILE (weft.openblas), WEFT_LIB=FILE
 * the loader's path (LD_LIBRARY_PATH, ldconfig)
 * $CUDA_HOME/lib64, $CUDA_PATH/lib64, /usr/local/cuda/lib64, /usr/local/cuda-VERSION/lib64
 * lib/python3.N/site-packages/nvidia/PACKAGE/lib under $VIRTUAL_ENV and /opt/NAME/.venv
 * </pre>
 */
final class NativeLibraries {

    private final UnaryOperator<String> properties;
    private final UnaryOperator<String> environment;
    private final Path root;

    /** The libraries of this machine. */
    NativeLibraries() {
        this(System::getProperty, System::getenv, Path.of("/"));
    }

    /** The libraries of a machine in a test, with its file system below {@code root}. */
    NativeLibraries(
            UnaryOperator<String> properties, UnaryOperator<String> environment, Path root) {
        this.properties = properties;
        this.environment = environment;
        this.root = root;
    }

    /**
     * A library of this machine, or why there is none.
     *
     * @param origin where it comes from, to begin a sentence with
     */
    static BoundLibrary bind(
            String name,
            String property,
            List<String> files,
            boolean folders,
            String origin,
            IntFunction<String> codeNames) {
        String howToGetIt = origin + "; " + howToName(property);
        return BoundLibrary.load(
                name,
                howToGetIt,
                codeNames,
                () -> new NativeLibraries().load(property, files, folders));
    }

    /**
     * How a user names the file of a library, to end a sentence with.
     *
     * @param property as for {@link #load}
     */
    static String howToName(String property) {
        return "a file elsewhere: -D%s=PATH or %s=PATH".formatted(property, variable(property));
    }

    /**
     * @param property for example {@code weft.cuda.nvrtc}; the variable is then WEFT_NVRTC
     * @param names file names, the preferred one first
     * @param folders whether to continue in {@link #folders} if the loader finds none
     * @throws IllegalArgumentException that lists everything tried
     */
    SymbolLookup load(String property, List<String> names, boolean folders) {
        String given = properties.apply(property);
        if (given == null) {
            given = environment.apply(variable(property));
        }
        if (given != null) {
            return loadGiven(Path.of(given));
        }
        IllegalArgumentException last = null;
        for (String name : names) {
            try {
                return open(name);
            } catch (IllegalArgumentException e) {
                last = e;
            }
        }
        List<String> tried = new ArrayList<>();
        List<Path> places = folders ? folders(tried) : List.of();
        for (Path folder : places) {
            tried.add(folder.toString());
            for (Path file : names.stream().map(folder::resolve).filter(Files::exists).toList()) {
                try {
                    return open(file);
                } catch (IllegalArgumentException e) {
                    tried.add(file + " (does not load)");
                    last = e;
                }
            }
        }
        throw new IllegalArgumentException(
                "cannot load "
                        + String.join(" or ", names)
                        + " from the library path"
                        + (tried.isEmpty() ? "" : " nor from " + String.join(", ", tried)),
                last);
    }

    private static SymbolLookup loadGiven(Path file) {
        if (!Files.isRegularFile(file)) {
            throw new IllegalArgumentException(file + ": no such file");
        }
        try {
            return open(file);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(file + ": not a library that loads here", e);
        }
    }

    /**
     * The folders that exist, in the order in which they are searched.
     *
     * @param unreadable gets a line for each folder that could not be listed
     */
    List<Path> folders(List<String> unreadable) {
        List<Path> found = new ArrayList<>();
        for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
            String home = environment.apply(variable);
            if (home != null && !home.isEmpty()) {
                found.addAll(expand(Path.of(home), List.of("lib64"), unreadable));
            }
        }
        found.addAll(expand(root, List.of("usr", "local", "cuda", "lib64"), unreadable));
        found.addAll(expand(root, List.of("usr", "local", "cuda-*", "lib64"), unreadable));
        List<Path> pythons = new ArrayList<>();
        String active = environment.apply("VIRTUAL_ENV");
        if (active != null && !active.isEmpty()) {
            pythons.add(Path.of(active));
        }
        pythons.addAll(expand(root, List.of("opt", "*", ".venv"), unreadable));
        List<String> packages = List.of("lib", "python3*", "site-packages", "nvidia", "*", "lib");
        for (Path python : pythons) {
            found.addAll(expand(python, packages, unreadable));
        }
        return found.stream().distinct().toList();
    }

    /** The folders below one that match a pattern per level, the highest version first. */
    private static List<Path> expand(Path start, List<String> patterns, List<String> unreadable) {
        List<Path> level = List.of(start);
        for (String pattern : patterns) {
            List<Path> next = new ArrayList<>();
            for (Path folder : level) {
                if (pattern.contains("*")) {
                    next.addAll(list(folder, pattern, unreadable));
                } else {
                    next.add(folder.resolve(pattern));
                }
            }
            level = next.stream().filter(Files::isDirectory).toList();
        }
        return level;
    }

    private static List<Path> list(Path folder, String pattern, List<String> unreadable) {
        List<Path> entries = new ArrayList<>();
        try (DirectoryStream<Path> stream = Files.newDirectoryStream(folder, pattern)) {
            stream.forEach(entries::add);
        } catch (IOException | DirectoryIteratorException e) {
            unreadable.add(folder + " (cannot be listed: " + e.getMessage() + ")");
        }
        entries.sort(Comparator.reverseOrder());
        return entries;
    }

    private static String variable(String property) {
        String library = property.substring(property.lastIndexOf('.') + 1);
        return "WEFT_" + library.toUpperCase(Locale.ROOT);
    }

    /**
     * Sets an environment variable that a library reads when it is loaded, unless the user has set
     * it. Through the C library: Java's own environment is a copy that native libraries do not see.
     */
    static void setUnlessSet(String name, String value) {
        NativeFunction setenv =
                BoundLibrary.load(
                                "libc",
                                "every Linux has it",
                                code -> "",
                                () -> Linker.nativeLinker().defaultLookup())
                        .function("setenv", "PPI");
        try (Arena arena = Arena.ofConfined()) {
            long nameAt = arena.allocateFrom(name).address();
            int keepExisting = 0;
            setenv.check(
                    setenv.call(nameAt, arena.allocateFrom(value).address(), keepExisting),
                    name + ", " + value);
        }
    }

    @SuppressWarnings("restricted")
    static SymbolLookup open(String name) {
        return SymbolLookup.libraryLookup(name, Arena.global());
    }

    @SuppressWarnings("restricted")
    static SymbolLookup open(Path file) {
        return SymbolLookup.libraryLookup(file.toAbsolutePath(), Arena.global());
    }
}
