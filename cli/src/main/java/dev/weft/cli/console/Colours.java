package dev.weft.cli.console;

import java.io.Console;
import java.util.Map;

/**
 * Whether colours are used on the terminal, and which: source ranks have eight colours in turn,
 * which can be told apart on light and dark backgrounds. Immutable.
 */
public record Colours(boolean shown) {

    /**
     * Numbers of the 256 colours of terminals: blue, orange, green, pink, gold, cyan, red, violet.
     */
    private static final int[] OF_SOURCES = {32, 208, 35, 170, 178, 44, 160, 99};

    private static final int GREY = 244;

    /** Colours that repeat after this many ranks. */
    public static final int SOURCES = OF_SOURCES.length;

    /** The colours that this process's environment asks for. */
    public static Colours ofProcess() {
        Console console = System.console();
        boolean terminal =
                Boolean.getBoolean("weft.terminal") || console != null && console.isTerminal();
        return of(System.getenv(), terminal);
    }

    /**
     * NO_COLOR, not empty, forbids them; FORCE_COLOR and CLICOLOR_FORCE, neither empty nor 0, ask
     * for them; otherwise a terminal has them unless TERM is dumb.
     *
     * @param terminal whether standard output is one
     */
    public static Colours of(Map<String, String> environment, boolean terminal) {
        if (!environment.getOrDefault("NO_COLOR", "").isEmpty()) {
            return new Colours(false);
        }
        boolean forced =
                isOn(environment.get("FORCE_COLOR")) || isOn(environment.get("CLICOLOR_FORCE"));
        return new Colours(forced || terminal && !"dumb".equals(environment.get("TERM")));
    }

    private static boolean isOn(String value) {
        return value != null && !value.isEmpty() && !value.equals("0");
    }

    /** The text in the colour of a source rank. */
    public String ofSource(int source, String text) {
        return painted(OF_SOURCES[source % SOURCES], text);
    }

    /** The text in a colour that stays in the background. */
    public String faint(String text) {
        return painted(GREY, text);
    }

    private String painted(int colour, String text) {
        return shown && !text.isBlank() ? "\033[38;5;" + colour + "m" + text + "\033[0m" : text;
    }
}
