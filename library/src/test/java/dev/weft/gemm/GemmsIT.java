package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Starts Java with and without the Vector API and asks for engines there. */
class GemmsIT {

    /** Prints the engines that it gets. */
    static final class Asker {
        private Asker() {}

        public static void main(String[] names) {
            for (String name : names) {
                try {
                    System.out.println(name + " gives " + Gemms.byName(name).name());
                } catch (IllegalArgumentException e) {
                    System.out.println(name + " refused: " + e.getMessage());
                }
            }
        }
    }

    @Test
    void withoutTheModuleAutoFallsBackAndSaysSoOnce() throws Exception {
        String output = ask(List.of(), "auto", "auto", "scalar", "vector");
        assertTrue(output.contains("auto gives scalar\n"), output);
        assertTrue(output.contains("scalar gives scalar\n"), output);
        assertTrue(
                output.contains(
                        "vector refused: engine 'vector' needs module jdk.incubator.vector:"
                                + " start Java with --add-modules jdk.incubator.vector\n"),
                output);
        assertEquals(2, output.split("using the scalar engine", -1).length, output);
    }

    @Test
    void withTheModuleAutoIsTheVectorEngine() throws Exception {
        String output = ask(List.of("--add-modules", "jdk.incubator.vector"), "auto", "vector");
        assertTrue(output.contains("auto gives vector-"), output);
        assertTrue(output.contains("vector gives vector-"), output);
        assertFalse(output.contains("serves"), output);
    }

    private static String ask(List<String> options, String... names)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(Asker.class.getName());
        command.addAll(Arrays.asList(names));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                        .replace("\r\n", "\n");
        assertEquals(0, process.waitFor(), output);
        return output;
    }
}
