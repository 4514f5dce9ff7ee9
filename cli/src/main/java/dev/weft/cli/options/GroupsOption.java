package dev.weft.cli.options;

import static dev.weft.process.SafeText.excerpt;

import dev.weft.cli.console.UsageException;
import dev.weft.fabric.ReplicaGroups;
import java.util.function.UnaryOperator;
import picocli.CommandLine.Option;

/** Which ranks of a world gather together. */
public final class GroupsOption {

    @Option(
            names = {"--groups", "--num-groups"},
            paramLabel = "G",
            description =
                    "Replica groups of consecutive ranks, each gathering on its own"
                            + " (default: ${DEFAULT-VALUE}).")
    public int value = 1;

    @Option(
            names = "--replica-groups",
            paramLabel = "LISTS",
            description =
                    "Replica groups as lists of ranks, such as 0,2,4,6/1,3,5,7, instead"
                            + " of --groups.")
    public String lists;

    /** The number of groups, before it is known how many ranks there are. */
    public int count() {
        return lists == null ? Math.max(1, value) : parsed(groups -> groups).count();
    }

    private ReplicaGroups parsed(UnaryOperator<ReplicaGroups> check) {
        return UsageException.checked(
                "--replica-groups " + excerpt(lists) + ": ",
                () -> check.apply(ReplicaGroups.parse(lists)));
    }

    /** Refuses overlaps, ranks that do not exist, and a number that does not divide the ranks. */
    public ReplicaGroups in(int ranks) {
        if (lists == null) {
            if (value < 1 || ranks % value != 0) {
                throw new UsageException(
                        "--groups %s: expected a number that divides the %s ranks", value, ranks);
            }
            return ReplicaGroups.equal(ranks, value);
        }
        if (value != 1) {
            throw new UsageException(
                    "--groups %s with --replica-groups %s: expected one of them",
                    value, excerpt(lists));
        }
        return parsed(groups -> groups.in(ranks));
    }
}
