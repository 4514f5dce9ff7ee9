package dev.weft.compat.command;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.GroupsOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.fabric.ReplicaGroups;
import java.util.List;
import java.util.OptionalInt;
import picocli.CommandLine.Option;

/** How many ranks gather together, in the words of FGCC and of the SBUF-to-SBUF gathers. */
public final class DegreeOption {

    @Option(
            names = "--tp-degree",
            paramLabel = "R",
            description =
                    "tp_degree: ranks of each group. Without -n there are this many times the"
                            + " number of groups.")
    Integer degree;

    /** The ranks of all groups together, if the degree is given. */
    public OptionalInt ranks(GroupsOption groups) {
        if (degree == null) {
            return OptionalInt.empty();
        }
        long least = OptionValues.between("--tp-degree", degree, 1, OptionValues.MOST_RANKS);
        return OptionalInt.of(OptionValues.ranks(Math.clamp(least * groups.count(), 0, 1 << 30)));
    }

    /** Refuses groups of another size. */
    public ReplicaGroups check(ReplicaGroups groups) {
        for (List<Integer> group : groups.groups()) {
            if (degree != null && group.size() != degree) {
                throw new UsageException(
                        "--tp-degree %s: a group has %s ranks, expected the same number",
                        degree, group.size());
            }
        }
        return groups;
    }
}
