package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.ffi.OpenBlas;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Starts Java with other settings of OpenBLAS: it is loaded once only. */
class OpenBlasGemmIT {

    /** Prints which OpenBLAS it gets. */
    static final class Asker {
        private Asker() {}

        public static void main(String[] arguments) {
            try {
                System.out.println(Gemms.byName("openblas").name() + ": " + OpenBlas.describe());
            } catch (IllegalArgumentException e) {
                System.out.println("refused: " + e.getMessage());
            }
            try {
                System.out.println("use: " + OpenBlas.describe());
            } catch (IllegalStateException e) {
                System.out.println("use: " + e.getMessage() + ", cause " + e.getCause());
            }
        }
    }

    @Test
    void aFileThatIsNotThereIsNamedTogetherWithTheCure() throws Exception {
        for (String output :
                List.of(
                        ask("-Dweft.openblas=/nowhere/libopenblas.so", "", ""),
                        ask("-Dx=y", "WEFT_OPENBLAS", "/nowhere/libopenblas.so"))) {
            assertTrue(
                    output.contains(
                            "refused: engine 'openblas': /nowhere/libopenblas.so: no such file"
                                    + " (Debian: libopenblas0-pthread;"),
                    output);
            assertTrue(output.contains("use: OpenBLAS: /nowhere/libopenblas.so"), output);
            assertTrue(output.contains("cause java.lang.IllegalArgumentException"), output);
        }
    }

    @Test
    void aLibraryWithoutTheSymbolsIsRefused() throws Exception {
        Path other = Path.of(System.getProperty("java.home"), "lib", "libjava.so");
        assumeTrue(other.toFile().exists(), "no " + other);
        String output = ask("-Dweft.openblas=" + other, "", "");
        assertTrue(output.contains("refused: engine 'openblas': "), output);
        assertTrue(output.contains("openblas_get_config"), output);
    }

    @Test
    void whereNativeAccessIsForbiddenTheFlagIsTold() throws Exception {
        String output = ask("--illegal-native-access=deny", "", "");
        assertTrue(output.contains("refused: engine 'openblas': "), output);
        assertTrue(output.contains("--enable-native-access=dev.weft"), output);
    }

    @Test
    void kernelsThatTheUserHasChosenStay() throws Exception {
        assumeTrue(
                OpenBlas.unavailable().isEmpty(),
                () -> "no OpenBLAS: " + OpenBlas.unavailable().orElseThrow());
        assumeTrue(System.getProperty("os.arch").equals("amd64"), "kernels of another machine");
        String output = ask("-Dx=y", "OPENBLAS_CORETYPE", "NEHALEM");
        assertTrue(output.contains("(Nehalem kernels)"), output);
    }

    private static String ask(String option, String variable, String value)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (!option.startsWith("--illegal")) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.add(option);
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(Asker.class.getName());
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        if (!variable.isEmpty()) {
            builder.environment().put(variable, value);
        }
        Process process = builder.start();
        String output =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                        .replace("\r\n", "\n");
        assertEquals(0, process.waitFor(), output);
        return output;
    }
}
