package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * OpenBLAS's fp32 product, by default one thread per call. The library is loaded when this class is
 * first used; if that fails, every use reports the reason. Any thread may call.
 */
public final class OpenBlas {

    private static final String CONFIG = "openblas_get_config";
    private static final String CORE_NAME = "openblas_get_corename";
    private static final String THREADS = "openblas_set_num_threads";

    private static final int ROW_MAJOR = 101;
    private static final int NO_TRANSPOSE = 111;

    private static final BoundLibrary LIBRARY =
            BoundLibrary.load(
                            "OpenBLAS",
                            "Debian: libopenblas0-pthread; "
                                    + NativeLibraries.howToName("weft.openblas"),
                            String::valueOf,
                            OpenBlas::load)
                    .startedBy(OpenBlas::start);

    /** Pointers are passed as plain numbers: a segment per row block would be a heap allocation. */
    private static final MethodHandle SGEMM =
            LIBRARY.bind(
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

    private OpenBlas() {}

    /** Why OpenBLAS cannot be used here and how to get it, or empty if it can be used. */
    public static Optional<String> unavailable() {
        return LIBRARY.unavailable();
    }

    /** Version and kernels, for example {@code OpenBLAS 0.3.21 (SkylakeX kernels)}. */
    public static String describe() {
        // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
        String config = text(LIBRARY, CONFIG);
        String[] words = config.split(" ");
        String version = words.length > 1 ? words[0] + " " + words[1] : config;
        return version + " (" + text(LIBRARY, CORE_NAME) + " kernels)";
    }

    /** OpenBLAS's own threads per call, for the whole process; 1 unless set. */
    public static void threads(int count) {
        threads(LIBRARY, count);
    }

    /**
     * C = A x B, or C + A x B if {@code add}, all of them fp32 and row-major. Matrices are given by
     * address, aligned to 4 bytes: the caller has checked their sizes and keeps their memory mapped
     * for as long as the call runs.
     *
     * @param aPitch elements from one row of A to the next, at least {@code k} and 1
     * @param bPitch likewise for B, at least {@code n} and 1
     * @param cPitch likewise for C, at least {@code n} and 1
     */
    public static void sgemm(
            boolean add,
            int m,
            int n,
            int k,
            long a,
            int aPitch,
            long b,
            int bPitch,
            long c,
            int cPitch) {
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
                    add ? 1f : 0f,
                    c,
                    cPitch);
        } catch (Throwable e) {
            throw LIBRARY.broken("cblas_sgemm", e);
        }
    }

    private static SymbolLookup load() {
        prepareEnvironment();
        List<String> names = List.of("libopenblas.so.0", "libopenblas.so");
        SymbolLookup symbols = new NativeLibraries().load("weft.openblas", names, false);
        // Another library under this name is as good as none.
        List.of(CONFIG, CORE_NAME, THREADS, "cblas_sgemm").forEach(symbols::findOrThrow);
        return symbols;
    }

    /**
     * Sets the variables that OpenBLAS reads once, when it is loaded. Child processes do not
     * inherit them: Java starts those with its own copy of the environment.
     */
    private static void prepareEnvironment() {
        // A release does not know CPUs newer than itself and uses its slowest kernels there: 0.3.21
        // on Sapphire Rapids runs at a fifth of its rate.
        if (System.getProperty("os.arch").equals("amd64")) {
            coreType(Processor.here().features())
                    .ifPresent(type -> NativeLibraries.setUnlessSet("OPENBLAS_CORETYPE", type));
        }
        // Weft's workers are the threads. If the user wants more for others in this process, idle
        // ones at least stop spinning soon.
        NativeLibraries.setUnlessSet("OPENBLAS_NUM_THREADS", "1");
        NativeLibraries.setUnlessSet("OPENBLAS_THREAD_TIMEOUT", "4");
    }

    /**
     * OpenBLAS's name for the best kernels that an x86 CPU with these features can run; empty if
     * the system does not report them, so that OpenBLAS detects them itself.
     */
    static Optional<String> coreType(Set<String> features) {
        if (features.containsAll(Set.of("avx512f", "avx512bw", "avx512dq", "avx512vl"))) {
            return Optional.of("SKYLAKEX");
        }
        boolean avx2 = features.containsAll(Set.of("avx2", "fma"));
        return avx2 ? Optional.of("HASWELL") : Optional.empty();
    }

    private static void start(BoundLibrary library) {
        String config = text(library, CONFIG);
        if (config.contains("USE64BITINT")) {
            throw new IllegalArgumentException(
                    "this OpenBLAS takes 64-bit sizes, Weft calls the one with 32 bits: " + config);
        }
        threads(library, 1);
    }

    private static void threads(BoundLibrary library, int count) {
        MethodHandle set = library.bind(THREADS, FunctionDescriptor.ofVoid(JAVA_INT));
        try {
            set.invokeExact(count);
        } catch (Throwable e) {
            throw library.broken(THREADS, e);
        }
    }

    @SuppressWarnings("restricted")
    private static String text(BoundLibrary library, String function) {
        MethodHandle handle = library.bind(function, FunctionDescriptor.of(ADDRESS));
        try {
            MemorySegment start = (MemorySegment) handle.invokeExact();
            return start.reinterpret(Long.MAX_VALUE).getString(0);
        } catch (Throwable e) {
            throw library.broken(function, e);
        }
    }
}
