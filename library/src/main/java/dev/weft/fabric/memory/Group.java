package dev.weft.fabric.memory;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** Ranks of the world that gather together. A group's rank, the member, is its index among them. */
public final class Group {

    private final int[] worldRanks;

    /** By world rank, up to the highest in the group; -1 for ranks of other groups. */
    private final int[] members;

    private Group(int[] worldRanks) {
        this.worldRanks = worldRanks;
        this.members = new int[Arrays.stream(worldRanks).max().orElse(-1) + 1];
        Arrays.fill(members, -1);
        for (int member = 0; member < worldRanks.length; member++) {
            members[worldRanks[member]] = member;
        }
    }

    /** The whole world as one group. */
    public static Group world(int worldSize) {
        return new Group(IntStream.range(0, worldSize).toArray());
    }

    /** A group of these members of this group, in this order. */
    Group of(List<Integer> some) {
        return new Group(some.stream().mapToInt(this::worldRank).toArray());
    }

    public int size() {
        return worldRanks.length;
    }

    /** Whether each of the group's ranks has the same number in a world of {@code worldSize}. */
    public boolean isWorld(int worldSize) {
        return size() == worldSize
                && IntStream.range(0, worldSize).allMatch(rank -> worldRanks[rank] == rank);
    }

    /** The rank within this group of the world's rank {@code worldRank}. */
    public int memberOf(int worldRank) {
        int member = worldRank < 0 || worldRank >= members.length ? -1 : members[worldRank];
        if (member < 0) {
            throw new IllegalArgumentException(
                    "rank %s is not in the group of ranks %s"
                            .formatted(worldRank, Arrays.toString(worldRanks)));
        }
        return member;
    }

    /** The world's rank of this group's rank {@code member}. */
    public int worldRank(int member) {
        if (member < 0 || member >= worldRanks.length) {
            throw new IllegalArgumentException(
                    ("member %s of a group of %s ranks: expected zero or more and less than"
                                    + " the ranks")
                            .formatted(member, worldRanks.length));
        }
        return worldRanks[member];
    }
}
