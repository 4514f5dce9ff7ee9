package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class KernelKeyTest {

    private static final KernelKey KEY =
            new KernelKey("a.cu", List.of("-std=c++17", "-DX=1"), "sm_90a");

    private static Map<String, String> sources(String... namesAndTexts) {
        Map<String, String> sources = new LinkedHashMap<>();
        for (int i = 0; i < namesAndTexts.length; i += 2) {
            sources.put(namesAndTexts[i], namesAndTexts[i + 1]);
        }
        return sources;
    }

    private static final Map<String, String> SOURCES =
            sources("a.cu", "kernel a", "b.cu", "kernel b", "x.cuh", "first", "y.cuh", "second");

    /** Worked out apart from this code: packed kernels of one build are found by another. */
    @Test
    void theDigestIsFixed() {
        assertEquals(
                "4e08a2f9ebd52ff0eb062bd143afb3a6badede69070ad7d126a72196e420ab7a",
                KEY.digest(SOURCES));
        assertEquals(KEY.digest(SOURCES) + ".cubin", KEY.fileName(SOURCES));
    }

    @Test
    void everythingThatCompilesIntoTheKernelCounts() {
        List<KernelKey> others =
                List.of(
                        new KernelKey("b.cu", KEY.options(), "sm_90a"),
                        new KernelKey("a.cu", List.of("-DX=1", "-std=c++17"), "sm_90a"),
                        new KernelKey("a.cu", List.of("-std=c++17-DX=1"), "sm_90a"),
                        new KernelKey("a.cu", List.of("-std=c++17"), "sm_90a"),
                        new KernelKey("a.cu", KEY.options(), "sm_90"));
        Set<String> digests = new HashSet<>(Set.of(KEY.digest(SOURCES)));
        for (KernelKey other : others) {
            assertTrue(digests.add(other.digest(SOURCES)), other + " has another's digest");
        }
        List<Map<String, String>> texts =
                List.of(
                        sources("a.cu", "kernel A", "x.cuh", "first", "y.cuh", "second"),
                        sources("a.cu", "kernel a", "x.cuh", "first", "y.cuh", "Second"),
                        sources("a.cu", "kernel a", "x.cuh", "second", "y.cuh", "first"),
                        sources("a.cu", "kernel a", "x.cuh", "firsts", "y.cuh", "econd"),
                        sources("a.cu", "kernel a", "x.cuh", "firstsecond"));
        for (Map<String, String> changed : texts) {
            assertTrue(digests.add(KEY.digest(changed)), changed + " has another's digest");
        }
    }

    @Test
    void nothingElseCounts() {
        assertEquals(
                KEY.digest(SOURCES),
                KEY.digest(sources("y.cuh", "second", "x.cuh", "first", "a.cu", "kernel a")));
    }

    @Test
    void whatIsNoKeyIsRefused() {
        assertRefused("no source a.cu among [b.cu]", () -> KEY.digest(Map.of("b.cu", "")));
        assertRefused(
                "source 'a.c': expected a name that ends with .cu",
                () -> new KernelKey("a.c", List.of(), "sm_80"));
        assertRefused(
                "architecture 'compute_80': expected one such as sm_80 or sm_90a",
                () -> new KernelKey("a.cu", List.of(), "compute_80"));
        assertRefused(
                "cluster 3: expected one of [1, 2]",
                () ->
                        KernelVariants.hopperGemm(
                                new KernelVariants.Operands(false, false, false), 3));
    }

    private static void assertRefused(String message, Runnable call) {
        assertEquals(message, assertThrows(IllegalArgumentException.class, call::run).getMessage());
    }

    @Test
    void readyKernelsAreAllSwitchesOfAllSources() throws IOException {
        List<KernelKey> ready = KernelVariants.ready();
        assertEquals(5 * 16 + 8 * 4 + 4 * 6 + 2 * 2 + 2 * 3 * 2, ready.size());
        Map<String, Long> perTarget =
                ready.stream()
                        .collect(
                                Collectors.groupingBy(
                                        key -> key.source() + " " + key.architecture(),
                                        Collectors.counting()));
        assertEquals(
                Map.ofEntries(
                        Map.entry("hopper_gemm.cu sm_90a", 32L),
                        Map.entry("few_rows_gemm.cu sm_90a", 32L),
                        Map.entry("blocks_gemm.cu sm_90a", 24L),
                        Map.entry("fp8_gemm.cu sm_90a", 12L),
                        Map.entry("mma_gemm.cu sm_80", 16L),
                        Map.entry("mma_gemm.cu sm_90", 16L),
                        Map.entry("check.cu sm_80", 8L),
                        Map.entry("check.cu sm_90", 8L),
                        Map.entry("simt_gemm.cu sm_80", 1L),
                        Map.entry("simt_gemm.cu sm_90", 1L),
                        Map.entry("finish.cu sm_80", 1L),
                        Map.entry("finish.cu sm_90", 1L)),
                perTarget);
        Map<String, String> sources = KernelVariants.sources();
        assertEquals(
                ready.size(), ready.stream().map(key -> key.digest(sources)).distinct().count());
    }

    @Test
    void aSwitchIsItsOption() {
        KernelKey key =
                KernelVariants.hopperGemm(new KernelVariants.Operands(true, false, true), 2);
        assertEquals(
                List.of("-DIN_BF16=1", "-DOUT_FP32=0", "-DB_TRANSPOSED=1", "-DCLUSTER=2"),
                key.options());
        assertEquals("-DSUMS=1", KernelVariants.withSums(key).options().getLast());
    }

    /** A header that is not listed would not count in the digest. */
    @Test
    void everyFileOfTheKernelsIsListedAndComesAlong() throws IOException {
        Path folder = Path.of("src", "main", "cuda");
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(
                    files.map(file -> file.getFileName().toString())
                            .collect(Collectors.toCollection(TreeSet::new)),
                    new TreeSet<>(KernelVariants.FILES));
        }
        for (Map.Entry<String, String> source : KernelVariants.sources().entrySet()) {
            assertEquals(Files.readString(folder.resolve(source.getKey())), source.getValue());
            assertNotEquals("", source.getValue());
        }
    }
}
