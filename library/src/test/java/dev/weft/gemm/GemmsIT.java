package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Epilogue;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Starts Java in several ways and asks for engines there. */
class GemmsIT {

    private static final String ALLOWED = "--enable-native-access=ALL-UNNAMED";
    private static final String FORBIDDEN = "--illegal-native-access=deny";

    /** Prints the engines that it gets, each after a product. */
    static final class Asker {
        private Asker() {}

        public static void main(String[] names) {
            for (String name : names) {
                try {
                    Gemm gemm = Gemms.byName(name);
                    multiply(gemm);
                    System.out.println(name + " gives " + gemm.name());
                } catch (IllegalArgumentException e) {
                    System.out.println(name + " refused: " + e.getMessage());
                }
            }
        }
    }

    private static void multiply(Gemm gemm) {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.copyOf(arena, new float[][] {{1, 2}, {3, 4}});
            Matrix c = GemmCases.product(gemm, arena, a, a, false, DType.FP32);
            if (c.get(0, 0) != 7 || c.get(1, 1) != 22) {
                throw new IllegalStateException(c.get(0, 0) + " and " + c.get(1, 1));
            }
        }
    }

    @Test
    void machineCodeNeedsNativeAccessAlone() throws Exception {
        String output = ask(List.of(ALLOWED), "auto", "scalar", "vector");
        assertTrue(output.contains("auto gives " + Gemms.portable().name() + "\n"), output);
        assertTrue(output.contains("scalar gives scalar\n"), output);
        assertTrue(
                output.contains(
                        "vector refused: engine 'vector' needs module jdk.incubator.vector:"
                                + " start Java with --add-modules jdk.incubator.vector\n"),
                output);
        assertFalse(output.contains("WARNING"), output);
    }

    @Test
    void withoutMachineCodeAutoFallsBackAndSaysSoOnce() throws Exception {
        String output = ask(List.of(FORBIDDEN), "auto", "auto", "native");
        assertTrue(output.contains("auto gives scalar\n"), output);
        assertEquals(2, output.split("using engine scalar, which is slower", -1).length, output);
        assertTrue(output.contains("native refused: engine 'native': "), output);
    }

    @Test
    void withTheModuleTheFallbackIsTheVectorEngine() throws Exception {
        String output = ask(List.of(FORBIDDEN, "--add-modules", "jdk.incubator.vector"), "auto");
        assertTrue(output.contains("auto gives vector-"), output);
    }

    /** Operators, too, whose epilogues are in machine code otherwise. */
    @Test
    void operatorsWorkWithoutMachineCode() throws Exception {
        String output = run(List.of(FORBIDDEN), Caller.class);
        assertTrue(output.contains("gelu(3 x 1) is 2.9959502\n"), output);
    }

    /** Prints an element of a call. */
    static final class Caller {
        private Caller() {}

        public static void main(String[] none) {
            try (World world = World.threads(1);
                    Arena arena = Arena.ofShared()) {
                Matrix a = Matrix.copyOf(arena, new float[][] {{3}});
                Matrix b = Matrix.copyOf(arena, new float[][] {{1}});
                world.run(
                        fabric -> {
                            try (var operator =
                                    AllGatherMatmul.on(fabric)
                                            .a(Shards.of(1), DType.FP32)
                                            .b(b)
                                            .epilogue(Epilogue.none().gelu())
                                            .prepare()) {
                                float found = operator.call(a).product().get(0, 0);
                                System.out.println("gelu(3 x 1) is " + found);
                            }
                        });
            }
        }
    }

    private static String ask(List<String> options, String... names)
            throws IOException, InterruptedException {
        return run(options, Asker.class, names);
    }

    private static String run(List<String> options, Class<?> program, String... names)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(program.getName());
        command.addAll(Arrays.asList(names));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                        .replace("\r\n", "\n");
        assertEquals(0, process.waitFor(), output);
        return output;
    }
}
