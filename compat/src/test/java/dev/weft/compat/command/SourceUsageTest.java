package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands of the source systems among the others: found, listed, and refusing as they do. */
class SourceUsageTest {

    private static final List<String> COMMANDS = List.of("ring", "fgcc", "gather", "helion");

    @TempDir Path folder;

    /** Behind the most used ones, in the order of the pages. */
    @Test
    void theHelpTextListsThem() {
        List<String> all = new ArrayList<>(Main.commandLine().getSubcommands().keySet());
        int first = all.indexOf("ring");
        assertEquals(COMMANDS, all.subList(first, first + COMMANDS.size()));
        assertTrue(all.indexOf("report") < first && first < all.indexOf("launch"), all.toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {"ring", "fgcc", "gather", "helion"})
    void aCommandThatIsNamedIsTheOnlyOneAndHasHelpWithAnExample(String command) {
        assertEquals(Set.of(command), Main.commandLine(command).getSubcommands().keySet());
        Invocation help = Invocation.of(command, "--help");
        assertEquals(0, help.code());
        assertTrue(help.out().contains("Example"), help.out());
        assertTrue(help.out().contains("./weft " + command), help.out());
    }

    @Test
    void aWrongValueIsAWholeSentence() {
        String line =
                "Invalid value for option '--groups': 'x': expected a whole number; see 'weft fgcc"
                        + " --help'";
        Invocation refused = Invocation.ofWords("fgcc --groups x");
        refused.assertRefused(line);
        assertEquals("weft: " + line, refused.err().strip());
    }

    @ParameterizedTest
    @ValueSource(strings = {"ring", "fgcc", "gather --rows", "helion"})
    void whatCannotFitIsRefused(String command) {
        Invocation.ofWords(command + " --m 16777216 --k 16777216")
                .assertRefused("of memory, this host has");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ring -n 2", "fgcc", "gather -n 2", "helion"})
    void twoOutputsInOneFileAreRefusedAlsoThroughLinks(String command) throws IOException {
        Path target = folder.resolve("x");
        Path link = Files.createSymbolicLink(folder.resolve("link"), target);
        Invocation.ofWords(command + " --json " + target + " --report " + link)
                .assertRefused("expected another file");
        assertFalse(Files.exists(target));
    }
}
