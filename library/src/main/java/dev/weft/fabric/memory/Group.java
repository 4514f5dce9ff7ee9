package dev.weft.fabric.memory;

/** Ranks that gather together: {@code size} ranks of the world from {@code first} on. */
public record Group(int first, int size) {

    /** The whole world as one group. */
    public static Group world(int worldSize) {
        return new Group(0, worldSize);
    }

    /** The group of {@code worldRank} when the world is cut into {@code groups} equal groups. */
    public static Group containing(int worldRank, int worldSize, int groups) {
        if (groups < 1 || worldSize % groups != 0) {
            throw new IllegalArgumentException(
                    ("%s ranks cannot form %s equal groups: the number of groups must divide"
                                    + " the ranks")
                            .formatted(worldSize, groups));
        }
        int size = worldSize / groups;
        return new Group(worldRank / size * size, size);
    }

    /** The rank within this group of the world's rank {@code worldRank}. */
    public int memberOf(int worldRank) {
        if (worldRank < first || worldRank >= first + size) {
            throw new IllegalArgumentException(
                    "rank %s is not in the group of ranks %s to %s"
                            .formatted(worldRank, first, first + size - 1));
        }
        return worldRank - first;
    }

    /** The world's rank of this group's rank {@code member}. */
    public int worldRank(int member) {
        if (member < 0 || member >= size) {
            throw new IllegalArgumentException(
                    ("member %s of a group of %s ranks: expected zero or more and less than"
                                    + " the ranks")
                            .formatted(member, size));
        }
        return first + member;
    }
}
