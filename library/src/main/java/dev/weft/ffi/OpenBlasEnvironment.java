package dev.weft.ffi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The environment variables that OpenBLAS reads once, when it is loaded. Values that the user has
 * set are kept. Child processes do not inherit them: Java starts those with its own copy of the
 * environment. For the thread that loads the library.
 */
final class OpenBlasEnvironment {

    private static final Set<String> AVX512 = Set.of("avx512f", "avx512bw", "avx512dq", "avx512vl");
    private static final Set<String> AVX2 = Set.of("avx2", "fma");

    private OpenBlasEnvironment() {}

    static void prepare() {
        // A release does not know CPUs newer than itself and uses its slowest kernels there: 0.3.21
        // on Sapphire Rapids runs at a fifth of its rate.
        if (System.getProperty("os.arch").equals("amd64")) {
            coreType(cpuFlags())
                    .ifPresent(type -> NativeEnvironment.setUnlessSet("OPENBLAS_CORETYPE", type));
        }
        // Weft's workers are the threads. If the user wants more for others in this process, idle
        // ones at least stop spinning soon.
        NativeEnvironment.setUnlessSet("OPENBLAS_NUM_THREADS", "1");
        NativeEnvironment.setUnlessSet("OPENBLAS_THREAD_TIMEOUT", "4");
    }

    /** OpenBLAS's name for the best kernels that an x86 CPU with these features can run. */
    static Optional<String> coreType(Set<String> flags) {
        if (flags.containsAll(AVX512)) {
            return Optional.of("SKYLAKEX");
        }
        return flags.containsAll(AVX2) ? Optional.of("HASWELL") : Optional.empty();
    }

    /** Empty if the system does not report them: OpenBLAS then detects them itself. */
    private static Set<String> cpuFlags() {
        try (Stream<String> lines = Files.lines(Path.of("/proc/cpuinfo"))) {
            return lines.filter(line -> line.startsWith("flags"))
                    .findFirst()
                    .map(line -> Set.copyOf(Arrays.asList(line.split("\\s+"))))
                    .orElse(Set.of());
        } catch (IOException e) {
            return Set.of();
        }
    }
}
