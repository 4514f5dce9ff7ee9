package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Set;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** The parser that is made for the command that is asked for. */
class MainTest {

    @Test
    void aCommandThatIsNamedIsTheOnlyOneAndTheSame() {
        CommandLine all = Main.commandLine();
        for (String name : Set.of("run", "rank", "verify", "dist")) {
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
    void completionKnowsAllCommands() {
        String script = Invocation.of("completion").out();
        assertTrue(script.contains("calibrate") && script.contains("soak"), script);
    }
}
