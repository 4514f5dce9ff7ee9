package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.plan.GatherWriter;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A user's algorithm that fails: one line that names it, whatever command asks it for plans. */
class FailingAlgorithmTest {

    private static final String SOURCE =
            """
            import dev.weft.plan.*;
            import dev.weft.plan.step.StepPlan;
            import java.util.List;

            public final class %1$s implements GatherWriter {
                public String label() {
                    return "%1$s".toLowerCase();
                }

                public List<StepPlan> plans(GatherRequest request) {
                    return %2$s;
                }
            }
            """;

    @TempDir static Path classes;

    @TempDir Path folder;

    private ClassLoader before;
    private URLClassLoader own;

    /** Not classes of this module: the service loader of Java would not take them. */
    @BeforeAll
    static void compile(@TempDir Path sources) throws Exception {
        Path library =
                Path.of(
                        GatherWriter.class
                                .getProtectionDomain()
                                .getCodeSource()
                                .getLocation()
                                .toURI());
        List<String> words =
                List.of(
                        "-cp",
                        library.toString(),
                        "-d",
                        classes.toString(),
                        source(sources, "Throwing", "plans(request)"),
                        source(
                                sources,
                                "Forgetful",
                                "new PlanBuilder(label(), request, 1).build()"));
        ToolProvider javac = ToolProvider.findFirst("javac").orElseThrow();
        assertEquals(0, javac.run(System.out, System.err, words.toArray(String[]::new)));
        Path service = classes.resolve("META-INF/services/dev.weft.plan.GatherWriter");
        Files.createDirectories(service.getParent());
        Files.writeString(service, "no.such.Algorithm\nThrowing\nForgetful\n");
    }

    private static String source(Path folder, String name, String plans) throws IOException {
        return Files.writeString(folder.resolve(name + ".java"), SOURCE.formatted(name, plans))
                .toString();
    }

    @BeforeEach
    void provide() throws IOException {
        own = new URLClassLoader(new URL[] {classes.toUri().toURL()}, getClass().getClassLoader());
        before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(own);
    }

    @AfterEach
    void remove() throws IOException {
        Thread.currentThread().setContextClassLoader(before);
        own.close();
    }

    private Invocation weft(String command, String algorithm) {
        String place =
                command.startsWith("run") ? " --quiet --data-dir " + folder.resolve("out") : "";
        return Invocation.ofWords(
                command + " -n 2 --gm 32 --gk 16 --gn 8 --algorithm " + algorithm + place);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "run --engine scalar",
                "run -r sim -v trn2",
                "plan --dump -v trn2",
                "sweep -v trn2"
            })
    void itIsRefusedInOneLine(String command) {
        weft(command, "throwing")
                .assertRefused("plans() threw StackOverflowError (Throwing.java:11)");
        weft(command, "throwing").assertRefused("throwing");
        weft(command, "forgetful").assertRefused("chunk 0 of rank 1 never gets to rank 0");
        weft(command, "nonsense")
                .assertRefused(
                        "algorithm 'nonsense': no class that can be loaded has it"
                                + " (dev.weft.plan.GatherWriter: Provider no.such.Algorithm");
    }

    /** Whoever uses Weft's own algorithms is not disturbed by a class that cannot be loaded. */
    @Test
    void othersStillRun() {
        Invocation run = weft("sweep -v trn2", "ring");
        run.assertPrints("ring");
    }
}
