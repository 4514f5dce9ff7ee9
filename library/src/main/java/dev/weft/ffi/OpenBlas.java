package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * OpenBLAS's fp32 product, by default one thread per call. The library is loaded when this class is
 * first used; if that fails, every use reports the reason. Any thread may call.
 */
public final class OpenBlas {

    private static final String PATH_PROPERTY = "weft.openblas";
    private static final String PATH_VARIABLE = "WEFT_OPENBLAS";
    private static final List<String> NAMES = List.of("libopenblas.so.0", "libopenblas.so");
    private static final String HOW_TO_GET_IT =
            " (Debian: libopenblas0-pthread; a file elsewhere: -D%s=PATH or %s=PATH)"
                    .formatted(PATH_PROPERTY, PATH_VARIABLE);
    private static final String HOW_TO_ALLOW_IT =
            " (start Java with --enable-native-access=dev.weft, or ALL-UNNAMED on the class path)";

    private static final int ROW_MAJOR = 101;
    private static final int NO_TRANSPOSE = 111;

    private static final MethodHandle SGEMM;
    private static final MethodHandle SET_THREADS;
    private static final String DESCRIPTION;
    private static final Throwable LOAD_ERROR;

    static {
        MethodHandle sgemm = null;
        MethodHandle setThreads = null;
        String description = null;
        Throwable failure = null;
        try {
            OpenBlasEnvironment.prepare();
            SymbolLookup library = load();
            description = introduce(library);
            setThreads =
                    bind(library, "openblas_set_num_threads", FunctionDescriptor.ofVoid(JAVA_INT));
            setThreads.invokeExact(1);
            sgemm = bindSgemm(library);
        } catch (Throwable e) {
            // Linking fails in many ways (no file, no permission, no symbol); all are reported
            // alike.
            failure = e;
        }
        SGEMM = sgemm;
        SET_THREADS = setThreads;
        DESCRIPTION = description;
        LOAD_ERROR = failure;
    }

    private OpenBlas() {}

    /** Why OpenBLAS cannot be used here and how to get it, or empty if it can be used. */
    public static Optional<String> unavailable() {
        return Optional.ofNullable(LOAD_ERROR).map(OpenBlas::explain);
    }

    /** Version and kernels, for example {@code OpenBLAS 0.3.21 (SkylakeX kernels)}. */
    public static String describe() {
        requireLoaded();
        return DESCRIPTION;
    }

    /** Threads of its own per call, for the whole process; 1 unless set. */
    public static void threads(int count) {
        requireLoaded();
        try {
            SET_THREADS.invokeExact(count);
        } catch (Throwable e) {
            throw new IllegalStateException("openblas_set_num_threads(" + count + ") failed", e);
        }
    }

    /**
     * C = A x B, all of them fp32 and row-major. Matrices are given by address, aligned to 4 bytes:
     * the caller has checked their sizes and keeps their memory mapped for as long as the call
     * runs.
     *
     * @param aPitch elements from one row of A to the next, at least {@code k} and 1
     * @param bPitch likewise for B, at least {@code n} and 1
     * @param cPitch likewise for C, at least {@code n} and 1
     */
    public static void sgemm(
            int m, int n, int k, long a, int aPitch, long b, int bPitch, long c, int cPitch) {
        requireLoaded();
        try {
            SGEMM.invokeExact(
                    ROW_MAJOR,
                    NO_TRANSPOSE,
                    NO_TRANSPOSE,
                    m,
                    n,
                    k,
                    1f,
                    a,
                    aPitch,
                    b,
                    bPitch,
                    0f,
                    c,
                    cPitch);
        } catch (Throwable e) {
            throw new IllegalStateException(
                    "cblas_sgemm(m " + m + ", n " + n + ", k " + k + ") failed", e);
        }
    }

    private static String explain(Throwable failure) {
        String why = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return why + (failure instanceof IllegalCallerException ? HOW_TO_ALLOW_IT : HOW_TO_GET_IT);
    }

    private static void requireLoaded() {
        if (LOAD_ERROR != null) {
            throw new IllegalStateException("OpenBLAS: " + explain(LOAD_ERROR), LOAD_ERROR);
        }
    }

    /** A file that the user has named is the only one that will do. */
    @SuppressWarnings("restricted")
    private static SymbolLookup load() {
        String path = System.getProperty(PATH_PROPERTY, System.getenv(PATH_VARIABLE));
        if (path != null) {
            if (!Files.isRegularFile(Path.of(path))) {
                throw new IllegalArgumentException(path + ": no such file");
            }
            return SymbolLookup.libraryLookup(Path.of(path).toAbsolutePath(), Arena.global());
        }
        IllegalArgumentException missing =
                new IllegalArgumentException(
                        "cannot load " + String.join(" or ", NAMES) + " from the library path");
        for (String name : NAMES) {
            try {
                return SymbolLookup.libraryLookup(name, Arena.global());
            } catch (IllegalArgumentException e) {
                missing.addSuppressed(e);
            }
        }
        throw missing;
    }

    private static String introduce(SymbolLookup library) throws Throwable {
        String config = text(library, "openblas_get_config");
        if (config.contains("USE64BITINT")) {
            throw new IllegalArgumentException(
                    "this OpenBLAS takes 64-bit sizes, Weft calls the one with 32 bits: " + config);
        }
        // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
        String[] words = config.split(" ");
        String version = words.length > 1 ? words[0] + " " + words[1] : config;
        return version + " (" + text(library, "openblas_get_corename") + " kernels)";
    }

    @SuppressWarnings("restricted")
    private static String text(SymbolLookup library, String function) throws Throwable {
        MethodHandle handle = bind(library, function, FunctionDescriptor.of(ADDRESS));
        MemorySegment start = (MemorySegment) handle.invokeExact();
        return start.reinterpret(Long.MAX_VALUE).getString(0);
    }

    /** Pointers are passed as plain numbers: a segment per row block would be a heap allocation. */
    private static MethodHandle bindSgemm(SymbolLookup library) {
        return bind(
                library,
                "cblas_sgemm",
                FunctionDescriptor.ofVoid(
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_FLOAT,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_FLOAT,
                        JAVA_LONG,
                        JAVA_INT));
    }

    @SuppressWarnings("restricted")
    private static MethodHandle bind(
            SymbolLookup library, String function, FunctionDescriptor descriptor) {
        return Linker.nativeLinker().downcallHandle(library.findOrThrow(function), descriptor);
    }
}
