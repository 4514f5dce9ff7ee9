package dev.weft.fabric.memory;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;

/**
 * Reads the environment variables that make a process a rank ({@link ShmJob#environment} sets
 * them).
 */
public final class RankEnvironment {

    static final String RANK = "WEFT_RANK";
    static final String RANKS = "WEFT_RANKS";
    static final String FOLDER = "WEFT_JOB";
    static final String DEADLINE_MS = "WEFT_DEADLINE_MS";
    static final String TOKEN = "WEFT_TOKEN";

    private RankEnvironment() {}

    /**
     * Joins the world as the rank that the variables name.
     *
     * @param defaultDeadline if they name none
     * @throws IllegalArgumentException if one of them is missing or wrong
     */
    public static MemoryFabric join(Map<String, String> variables, Duration defaultDeadline) {
        int ranks = number(variables, RANKS);
        int rank = number(variables, RANK);
        String folder = variables.get(FOLDER);
        MemoryFabric.checkRanks(ranks);
        if (rank >= ranks || folder == null) {
            throw new IllegalArgumentException(
                    "%s=%s, %s=%s, %s=%s: expected a rank below the ranks and a folder to meet in"
                            .formatted(RANK, rank, RANKS, ranks, FOLDER, folder));
        }
        Duration deadline =
                variables.containsKey(DEADLINE_MS)
                        ? Duration.ofMillis(number(variables, DEADLINE_MS))
                        : defaultDeadline;
        MemoryFabric.checkDeadline(deadline);
        RunToken token = RunToken.parse(variables.get(TOKEN));
        if (!token.isSet() && ShmJob.hasStarter(Path.of(folder))) {
            throw new IllegalArgumentException(
                    """
                    environment variable %s is not set: expected the one of the command that made \
                    %s and starts its ranks"""
                            .formatted(TOKEN, folder));
        }
        return Rendezvous.join(Path.of(folder), rank, ranks, token, deadline);
    }

    private static int number(Map<String, String> variables, String name) {
        String value = variables.get(name);
        try {
            int number = Integer.parseInt(value == null ? "" : value);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            // reported below, with the value
        }
        throw new IllegalArgumentException(
                "environment variable %s is %s: expected a number of zero or more"
                        .formatted(name, value == null ? "not set" : printable(value)));
    }

    /** The value, if it fits a message of one line. */
    private static String printable(String value) {
        return value.matches("[!-~]{1,60}") ? value : "no number";
    }
}
