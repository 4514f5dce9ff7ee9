package dev.weft.compat.command;

import static dev.weft.process.SafeText.excerpt;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.OptionValues;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

/**
 * The variables that start the ring tutorial on AWS Neuron. Each value is checked when it is asked
 * for, so one that an option overrides does no harm.
 */
public record NeuronEnvironment(Map<String, String> variables) {

    private static final String RANKS = "NEURONCORE_NUM_DEVICES";
    private static final String LNC = "NEURON_LOGICAL_NC_CONFIG";
    private static final String FLAGS = "NEURON_CC_FLAGS";

    /** The compiler's names of the option. */
    private static final List<String> LNC_FLAGS = List.of("--lnc", "-lnc", "--logical-nc-config");

    /** The number of ranks. */
    public OptionalInt ranks() {
        String given = variables.getOrDefault(RANKS, "").strip();
        return given.isEmpty()
                ? OptionalInt.empty()
                : OptionalInt.of(number(RANKS + "=" + given, given, OptionValues.MOST_RANKS));
    }

    /** Programs per rank, as the runtime and the compiler's flags say. */
    public OptionalInt lnc() {
        String given = variables.getOrDefault(LNC, "").strip();
        String flag = flag();
        if (given.isEmpty()) {
            return flag == null ? OptionalInt.empty() : OptionalInt.of(lncOfFlag(flag));
        }
        int lnc = number(LNC + "=" + given, given, 2);
        if (flag != null && lncOfFlag(flag) != lnc) {
            throw new UsageException(
                    "%s=%s and %s with --lnc=%s: expected the same number",
                    LNC, lnc, FLAGS, lncOfFlag(flag));
        }
        return OptionalInt.of(lnc);
    }

    /** The variables that say something about programs per rank. */
    public String lncNames() {
        boolean runtime = !variables.getOrDefault(LNC, "").isBlank();
        return runtime && flag() != null ? LNC + " and " + FLAGS : runtime ? LNC : FLAGS;
    }

    /** The variable that says how many ranks there are. */
    public String ranksName() {
        return RANKS;
    }

    private static int lncOfFlag(String flag) {
        return number(FLAGS + " with --lnc=" + flag, flag, 2);
    }

    /** The value of the last such flag, empty if it has none; null without the flag. */
    private String flag() {
        String found = null;
        Iterator<String> words =
                List.of(variables.getOrDefault(FLAGS, "").strip().split("\\s+")).iterator();
        while (words.hasNext()) {
            String[] parts = words.next().split("=", 2);
            if (LNC_FLAGS.contains(parts[0])) {
                found = parts.length == 2 ? parts[1] : words.hasNext() ? words.next() : "";
            }
        }
        return found;
    }

    private static int number(String said, String value, int most) {
        try {
            int number = Integer.parseInt(value);
            if (number >= 1 && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below, like a number out of range.
        }
        throw new UsageException("%s: expected 1 to %s", excerpt(said), most);
    }
}
