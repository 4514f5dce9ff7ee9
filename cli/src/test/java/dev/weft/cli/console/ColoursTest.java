package dev.weft.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ColoursTest {

    @ParameterizedTest
    @CsvSource({
        "'', true, true",
        "'', false, false",
        "TERM=xterm-256color, true, true",
        "TERM=dumb, true, false",
        "NO_COLOR=1, true, false",
        "NO_COLOR=0, true, false",
        "NO_COLOR=, true, true",
        "FORCE_COLOR=1, false, true",
        "FORCE_COLOR=0, false, false",
        "FORCE_COLOR=, false, false",
        "CLICOLOR_FORCE=1, false, true",
        "CLICOLOR_FORCE=0, false, false",
        "FORCE_COLOR=1 TERM=dumb, false, true",
        "FORCE_COLOR=1 NO_COLOR=1, true, false",
        "FORCE_COLOR=1 NO_COLOR=, false, true",
    })
    void theEnvironmentDecides(String variables, boolean terminal, boolean shown) {
        Map<String, String> environment = new HashMap<>();
        for (String variable : variables.isEmpty() ? new String[0] : variables.split(" ")) {
            int equals = variable.indexOf('=');
            environment.put(variable.substring(0, equals), variable.substring(equals + 1));
        }
        assertEquals(new Colours(shown), Colours.of(environment, terminal));
    }

    @Test
    void eightSourcesHaveColoursOfTheirOwn() {
        Colours colours = new Colours(true);
        assertEquals("\033[38;5;32m#\033[0m", colours.ofSource(0, "#"));
        assertEquals(colours.ofSource(3, "#"), colours.ofSource(11, "#"));
        for (int source = 1; source < Colours.SOURCES; source++) {
            assertNotEquals(colours.ofSource(0, "#"), colours.ofSource(source, "#"));
        }
        assertEquals(" ", colours.ofSource(1, " "), "nothing to paint");
    }

    @Test
    void textStaysAsItIsWithoutColours() {
        assertEquals("#", new Colours(false).ofSource(0, "#"));
        assertEquals(".", new Colours(false).faint("."));
    }
}
