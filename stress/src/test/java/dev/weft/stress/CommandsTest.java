package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands themselves: what they print, and what they refuse. */
class CommandsTest extends CommandTest {

    private int run(String... words) {
        return run(Main.commandLine(), words);
    }

    @Test
    void stragglersTellWhatWasCompared() {
        assertEquals(
                0, run("stragglers", "--calls", "48", "-n", "3", "--delay", "50"), err::toString);
        assertTrue(out.toString().startsWith("3 ranks (threads): 48 calls, "), out.toString());
        assertTrue(out.toString().contains(" 0 problems, "), out.toString());
    }

    @Test
    void aSoakTellsItsSeedAndWhatItDid() {
        assertEquals(0, run("soak", "--minutes", "0.05", "--seed", "3"), err::toString);
        assertTrue(out.toString().startsWith("seed 3: ./weft soak --seed 3"), out.toString());
        assertTrue(out.toString().contains("wrong results 0, problems 0"), out.toString());
    }

    @Test
    void oneCaseIsReplayedFromItsWords() {
        int code = run("faults", "--case", "ranks=2 fault=throw phase=first-chunk algorithm=ring");
        assertEquals(0, code, err::toString);
        assertTrue(
                out.toString().contains("| throw | first-chunk | threads | 1 PeerFailed |"),
                out.toString());
    }

    /** The launcher shows its own text, because this module may not be built yet. */
    @ParameterizedTest
    @ValueSource(strings = {"soak", "faults", "stragglers", "fuzz", "prove"})
    void theLauncherShowsThisHelp(String command) {
        // Picocli sorts options by the rules of the user's language.
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.ROOT);
        try {
            assertEquals(0, run(command, "--help"), err::toString);
        } finally {
            Locale.setDefault(before);
        }
        assertEquals(
                out.toString(),
                dev.weft.cli.Main.commandLine(command)
                        .getSubcommands()
                        .get(command)
                        .getUsageMessage(),
                "cli/src/main/resources/dev/weft/cli/help/" + command + ".txt is out of date");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "soak --minutes 0",
                "soak --minutes -3",
                "soak --minutes much",
                "soak --minutes NaN",
                "soak --deadline 5",
                "soak --seed x",
                "faults --launcher cloud",
                "faults --op sum",
                "faults --case ranks=0",
                "faults --case nonsense",
                "faults --deadline soon",
                "stragglers --calls 0",
                "stragglers --num_ranks 1000",
                "stragglers --launcher cloud",
                "stragglers --delay -1",
                "stragglers --nonsense",
                "fuzz nonsense",
                "nonsense",
                ""
            })
    void wrongValuesAreRefusedInOneLine(String words) {
        assertEquals(2, run(words.isEmpty() ? new String[0] : words.split(" ")));
        assertEquals("", out.toString());
        assertEquals(1, err.toString().lines().count(), err.toString());
        assertTrue(err.toString().startsWith("weft: "), err.toString());
        assertTrue(err.toString().strip().endsWith(" --help'"), err.toString());
    }
}
