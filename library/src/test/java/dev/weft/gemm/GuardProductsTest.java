package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.ChildJvm;
import dev.weft.ffi.GuardedMemory;
import dev.weft.ffi.OpenBlas;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Engines read and write their operands and nothing beside them. In processes of their own: one
 * that steps too far ends, and thousands of odd shapes would spoil the compiled kernels for others.
 */
class GuardProductsTest {

    private static final Map<String, String> TELL_WHERE =
            Map.of(
                    "JAVA_TOOL_OPTIONS",
                    "-XX:+ErrorFileToStdout -XX:-CreateCoredumpOnCrash"
                            + " --add-modules=jdk.incubator.vector");

    @ParameterizedTest
    @ValueSource(
            strings = {"scalar", "native", "amx", "vector", "openblas", "converters", "judges"})
    void nothingBesideTheOperandsIsTouched(String work) {
        assumeTrue(
                GuardedMemory.unavailable().isEmpty(),
                () -> GuardedMemory.unavailable().orElseThrow());
        Optional<String> missing = missing(work);
        assumeTrue(missing.isEmpty(), missing::get);
        try (ChildJvm child = ChildJvm.start(GuardedProducts.class, TELL_WHERE, work)) {
            assertEquals(0, child.exitCode(), () -> String.join("\n", child.output()));
            int cases = Integer.parseInt(child.awaitLine("cases "));
            assertTrue(cases >= 300, cases + " cases of " + work);
        }
    }

    /** Why there is no such engine here, or empty. */
    private static Optional<String> missing(String work) {
        return switch (work) {
            case "native" -> Gemms.nativeUnavailable();
            case "amx" -> Gemms.amxUnavailable();
            case "openblas" -> OpenBlas.unavailable().map(why -> "no OpenBLAS: " + why);
            default -> Optional.empty();
        };
    }
}
