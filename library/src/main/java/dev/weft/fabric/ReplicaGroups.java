package dev.weft.fabric;

import static dev.weft.process.SafeText.excerpt;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Which ranks gather together: disjoint lists of ranks. They may differ in length, leave out ranks
 * and list them in any order: a group's rank i is the i-th of its list. Immutable.
 *
 * {@snippet :
 * ReplicaGroups evenAndOdd = ReplicaGroups.parse("0,2,4,6/1,3,5,7");
 * ReplicaGroups halves = ReplicaGroups.consecutive(2, 4); // 0,1,2,3/4,5,6,7
 * }
 *
 * @param groups the ranks of each group
 */
public record ReplicaGroups(List<List<Integer>> groups) {

    /** Refuses an empty list, groups without ranks, and ranks that appear twice. */
    public ReplicaGroups {
        groups = groups.stream().map(List::copyOf).toList();
        if (groups.isEmpty()) {
            throw new IllegalArgumentException("no replica groups: expected at least one");
        }
        Set<Integer> seen = new HashSet<>();
        for (List<Integer> group : groups) {
            if (group.isEmpty()) {
                throw new IllegalArgumentException(
                        "replica group %s of %s has no ranks: expected at least one"
                                .formatted(groups.indexOf(group), groups.size()));
            }
            for (int rank : group) {
                if (rank < 0) {
                    throw new IllegalArgumentException(
                            "rank %s in replica groups %s: expected zero or more"
                                    .formatted(rank, excerpt(text(groups))));
                }
                if (!seen.add(rank)) {
                    throw new IllegalArgumentException(
                            "rank %s is twice in replica groups %s: expected each rank once"
                                    .formatted(rank, excerpt(text(groups))));
                }
            }
        }
    }

    /** {@code groups} groups of {@code ranksEach} consecutive ranks each. */
    public static ReplicaGroups consecutive(int groups, int ranksEach) {
        if (groups < 1 || ranksEach < 1) {
            throw new IllegalArgumentException(
                    "%s replica groups of %s ranks: expected at least one of each"
                            .formatted(groups, ranksEach));
        }
        return new ReplicaGroups(
                IntStream.range(0, groups)
                        .mapToObj(g -> range(Math.multiplyExact(g, ranksEach), ranksEach))
                        .toList());
    }

    private static List<Integer> range(int first, int size) {
        return IntStream.range(first, Math.addExact(first, size)).boxed().toList();
    }

    /** All {@code ranks} of a world in {@code groups} equal groups of consecutive ranks. */
    public static ReplicaGroups equal(int ranks, int groups) {
        if (groups < 1 || ranks % groups != 0) {
            throw new IllegalArgumentException(
                    ("%s ranks cannot form %s equal groups: the number of groups must divide"
                                    + " the ranks")
                            .formatted(ranks, groups));
        }
        return consecutive(groups, ranks / groups);
    }

    /** Reads ranks separated by commas, and groups by slashes: {@code 0,2,4,6/1,3,5,7}. */
    public static ReplicaGroups parse(String text) {
        List<List<Integer>> groups = new ArrayList<>();
        for (String group : text.split("/", -1)) {
            try {
                groups.add(Arrays.stream(group.split(",", -1)).map(ReplicaGroups::rank).toList());
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException(
                        "replica group \"%s\": expected ranks with commas between them, and slashes between groups, as in 0,2,4,6/1,3,5,7"
                                .formatted(excerpt(group)),
                        e);
            }
        }
        return new ReplicaGroups(groups);
    }

    /** Only with the digits 0 to 9: Java would read those of other scripts too. */
    private static Integer rank(String text) {
        String digits = text.strip();
        if (!digits.matches("-?[0-9]{1,9}")) {
            throw new NumberFormatException(text);
        }
        return Integer.valueOf(digits);
    }

    /** The number of groups. */
    public int count() {
        return groups.size();
    }

    /** The number of the group that {@code rank} is in, or -1. */
    public int groupOf(int rank) {
        for (int g = 0; g < groups.size(); g++) {
            if (groups.get(g).contains(rank)) {
                return g;
            }
        }
        return -1;
    }

    /**
     * The ranks that gather with {@code rank}, including itself; only itself if it is in no group.
     */
    public List<Integer> with(int rank) {
        int group = groupOf(rank);
        return group < 0 ? List.of(rank) : groups.get(group);
    }

    /** Whether there is one group, of all {@code ranks} of a world in order. */
    public boolean isAll(int ranks) {
        return groups.equals(List.of(range(0, ranks)));
    }

    /** Whether all {@code ranks} of a world are in equal groups of consecutive ranks. */
    public boolean isEqual(int ranks) {
        return ranks % count() == 0 && equals(equal(ranks, count()));
    }

    /** Refuses ranks that a world of {@code ranks} does not have. */
    public ReplicaGroups in(int ranks) {
        for (List<Integer> group : groups) {
            for (int rank : group) {
                if (rank >= ranks) {
                    throw new IllegalArgumentException(
                            "rank %s in replica groups %s: expected ranks 0 to %s, which the world has"
                                    .formatted(rank, excerpt(toString()), ranks - 1));
                }
            }
        }
        return this;
    }

    /** The text that {@link #parse} reads. */
    @Override
    public String toString() {
        return text(groups);
    }

    private static String text(List<List<Integer>> groups) {
        return groups.stream()
                .map(group -> group.stream().map(String::valueOf).collect(Collectors.joining(",")))
                .collect(Collectors.joining("/"));
    }
}
