package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The parser that is made for the command that is asked for. */
class MainTest {

    @TempDir Path folder;

    @Test
    void aCommandThatIsNamedIsTheOnlyOneAndTheSame() {
        CommandLine all = Main.commandLine();
        for (String name : Set.of("run", "verify", "dist")) {
            CommandLine one = Main.commandLine(name, "--gm", "64");
            assertEquals(Set.of(name), one.getSubcommands().keySet());
            assertEquals(
                    all.getSubcommands().get(name).getUsageMessage(),
                    one.getSubcommands().get(name).getUsageMessage());
        }
    }

    @Test
    void anyOtherArgumentMakesAllCommands() {
        Set<String> all = Main.commandLine().getSubcommands().keySet();
        assertTrue(all.contains("run") && all.contains("pack-kernels"), all.toString());
        for (String first : new String[] {"--help", "rum", ""}) {
            assertEquals(all, Main.commandLine(first).getSubcommands().keySet());
        }
    }

    @Test
    void completionKnowsValues() {
        for (String shell : List.of("bash", "fish")) {
            String script = Invocation.of("completion", shell).out();
            for (String value : List.of("bidirectional-ring", "h200-nvlink8", "column-sharded")) {
                assertTrue(script.contains(value), shell + " " + value);
            }
        }
        Invocation.of("completion", "tcsh").assertRefused("shell 'tcsh': expected one of bash");
    }

    /** Bash itself completes a value. */
    @Test
    void bashCompletesValues() throws IOException, InterruptedException {
        Path script = folder.resolve("weft.bash");
        Files.writeString(script, Invocation.of("completion").out());
        Process bash =
                new ProcessBuilder(
                                "bash",
                                "-c",
                                "source '%s'; COMP_WORDS=(weft run --algorithm mesh-pu); COMP_CWORD=3;"
                                                .formatted(script)
                                        + " _complete_weft 2>/dev/null; echo \"${COMPREPLY[@]}\"")
                        .redirectErrorStream(true)
                        .start();
        String found = new String(bash.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, bash.waitFor(), found);
        assertEquals("mesh-push mesh-pull", found.strip());
    }

    @Test
    void completionKnowsAllCommands() {
        String script = Invocation.of("completion").out();
        assertTrue(script.contains("calibrate") && script.contains("soak"), script);
    }

    /** Before any file is written, and by no help text. */
    @Test
    void wrongSettingsAreRefusedAtOnce() {
        for (Map<String, String> wrong :
                List.of(
                        Map.of("WEFT_AUTO_TRIAL_MS", "-1"),
                        Map.of("WEFT_AUTO_MEASURE_MS", "\u0661"),
                        Map.of("WEFT_SHM_DIR", "/nowhere"))) {
            String name = wrong.keySet().iterator().next();
            String[] run = {"run", "--data-dir", folder.resolve("out").toString()};
            Invocation.on(Main.commandLine(wrong, run), run)
                    .assertRefused("environment variable " + name + " is " + wrong.get(name));
            assertFalse(Files.exists(folder.resolve("out")));
            String[] help = {"run", "--help"};
            assertEquals(0, Invocation.on(Main.commandLine(wrong, help), help).code());
        }
    }
}
