package dev.weft.ffi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * What a processor can do, in Linux's names: {@code avx2}, {@code amx_bf16}, {@code asimd}.
 * Features that the system does not let programs use are left out.
 *
 * @param arch as Java names it: {@code amd64}, {@code aarch64}
 */
public record Processor(String arch, Set<String> features) {

    /** This machine's processor; without features if the system does not report them. */
    public static Processor here() {
        String arch = System.getProperty("os.arch");
        try {
            return of(arch, Files.readString(Path.of("/proc/cpuinfo")));
        } catch (IOException e) {
            // Not Linux: there are no other kernels to choose from anyway.
            return new Processor(arch, Set.of());
        }
    }

    /** The first processor in {@code /proc/cpuinfo}; all of a machine have the same features. */
    static Processor of(String arch, String cpuInfo) {
        Set<String> features =
                cpuInfo.lines()
                        .filter(line -> line.matches("(flags|Features)\\s*:.*"))
                        .findFirst()
                        .map(
                                line ->
                                        Set.copyOf(
                                                List.of(
                                                        line.replaceFirst(".*:\\s*", "")
                                                                .split("\\s+"))))
                        .orElse(Set.of());
        return new Processor(arch, features);
    }

    /** A wanted feature of x86_64 that is missing, or empty. */
    public Optional<String> lacks(List<String> wanted) {
        if (!arch.equals("amd64")) {
            return Optional.of(wanted.getFirst() + ", it is " + arch);
        }
        return wanted.stream().filter(feature -> !features.contains(feature)).findFirst();
    }

    /**
     * The kind of code for fp32 that it should execute.
     *
     * @param wanted the kind in the property {@code weft.gemm.code}, or null for the fastest
     */
    public String kind(String wanted) {
        List<String> kinds = kinds();
        if (kinds.isEmpty()) {
            throw new IllegalStateException(
                    "Weft writes machine code for aarch64 and for x86_64 with AVX2, not for "
                            + arch
                            + (arch.equals("amd64") ? " without" : ""));
        }
        if (wanted != null && !kinds.contains(wanted)) {
            throw new IllegalStateException(
                    "property weft.gemm.code is '%s': this processor executes %s"
                            .formatted(wanted, String.join(", ", kinds)));
        }
        return wanted == null ? kinds.getFirst() : wanted;
    }

    /** The fastest first. */
    public List<String> kinds() {
        if (arch.equals("aarch64")) {
            return List.of("neon");
        }
        if (lacks(List.of("avx2", "fma", "f16c")).isPresent()) {
            return List.of();
        }
        return features.contains("avx512f") ? List.of("avx512", "avx2") : List.of("avx2");
    }
}
