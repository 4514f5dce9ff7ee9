package dev.weft.bench.peers;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * The lab of hosts that this process runs in ({@code ./weft lab}). Immutable; any thread may call
 * it.
 *
 * @param link the program that changes its links
 */
public record Lab(String link, int hosts) {

    /** By what a lab leaves in the environment. */
    public static Optional<Lab> current() {
        return of(System.getenv());
    }

    public static Optional<Lab> of(Map<String, String> environment) {
        String link = environment.get("WEFT_LAB_LINK");
        String hosts = environment.get("WEFT_LAB_HOSTS");
        if (link == null || hosts == null) {
            return Optional.empty();
        }
        if (!hosts.matches("[1-9][0-9]{0,4}")) {
            throw new IllegalArgumentException(
                    "environment variable WEFT_LAB_HOSTS is not a number of hosts: run in ./weft lab");
        }
        return Optional.of(new Lab(link, Integer.parseInt(hosts)));
    }

    /** Why an item is skipped where there is none. */
    public static String missing(String item) {
        return "not in a lab: start it as ./weft lab -- ./weft bench cpu --only " + item;
    }

    /**
     * Sets the rate of all links.
     *
     * @param rate a number with kbit, mbit or gbit, or {@code none}
     * @param folder for what the program prints
     */
    public void rate(String rate, Path folder) throws IOException, InterruptedException {
        ChildCommand.Output output = Programs.run(folder, link, "rate", rate);
        if (!output.ok()) {
            throw new IllegalStateException("the lab's links: " + output.lastLine());
        }
    }
}
