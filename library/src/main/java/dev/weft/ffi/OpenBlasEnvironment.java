package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;

/**
 * The environment variables that OpenBLAS reads once, when it is loaded. What the user has set
 * stays. Child processes do not inherit them: Java starts those with its own copy of the
 * environment. For the thread that loads the library.
 */
final class OpenBlasEnvironment {

    private static final Set<String> AVX512 = Set.of("avx512f", "avx512bw", "avx512dq", "avx512vl");
    private static final Set<String> AVX2 = Set.of("avx2", "fma");

    private OpenBlasEnvironment() {}

    static void prepare() throws Throwable {
        // A release does not know CPUs younger than itself and takes its slowest kernels there:
        // 0.3.21 on Sapphire Rapids runs at a fifth of its rate.
        if (System.getProperty("os.arch").equals("amd64")) {
            Optional<String> type = coreType(cpuFlags());
            if (type.isPresent()) {
                setUnlessSet("OPENBLAS_CORETYPE", type.get());
            }
        }
        // Weft's workers are the threads. Where the user wants more for others in this process,
        // idle ones at least stop spinning soon.
        setUnlessSet("OPENBLAS_NUM_THREADS", "1");
        setUnlessSet("OPENBLAS_THREAD_TIMEOUT", "4");
    }

    /** OpenBLAS's name for the best kernels that an x86 CPU with these features can run. */
    static Optional<String> coreType(Set<String> flags) {
        if (flags.containsAll(AVX512)) {
            return Optional.of("SKYLAKEX");
        }
        return flags.containsAll(AVX2) ? Optional.of("HASWELL") : Optional.empty();
    }

    /** Empty where the system does not tell: OpenBLAS then finds out by itself. */
    private static Set<String> cpuFlags() throws IOException {
        Path cpuInfo = Path.of("/proc/cpuinfo");
        if (!Files.isReadable(cpuInfo)) {
            return Set.of();
        }
        return Files.readAllLines(cpuInfo).stream()
                .filter(line -> line.startsWith("flags"))
                .findFirst()
                .map(line -> Set.copyOf(Arrays.asList(line.split("\\s+"))))
                .orElse(Set.of());
    }

    /** Through the C library: Java's own environment is a copy that OpenBLAS does not see. */
    @SuppressWarnings("restricted")
    private static void setUnlessSet(String name, String value) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle setenv =
                linker.downcallHandle(
                        linker.defaultLookup().findOrThrow("setenv"),
                        FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
        try (Arena arena = Arena.ofConfined()) {
            int keepExisting = 0;
            int code =
                    (int)
                            setenv.invokeExact(
                                    arena.allocateFrom(name),
                                    arena.allocateFrom(value),
                                    keepExisting);
            if (code != 0) {
                throw new IllegalStateException(
                        "setenv(" + name + ", " + value + ") returned " + code);
            }
        }
    }
}
