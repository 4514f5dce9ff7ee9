package dev.weft.plan;

/**
 * Ranks that gather together: {@code size} consecutive ranks of the world from {@code first} on.
 *
 * @param index which of the world's replica groups this is
 */
public record Group(int index, int first, int size) {

    public Group {
        if (index < 0 || first < 0 || size < 1) {
            throw new IllegalArgumentException(
                    "group "
                            + index
                            + " from rank "
                            + first
                            + " of size "
                            + size
                            + ": expected numbers of zero or more and a size of at least one");
        }
    }

    /** The whole world as one group. */
    public static Group world(int worldSize) {
        return new Group(0, 0, worldSize);
    }

    /** The group of {@code worldRank} when the world is cut into {@code groups} equal groups. */
    public static Group containing(int worldRank, int worldSize, int groups) {
        if (worldRank < 0 || worldRank >= worldSize) {
            throw new IllegalArgumentException(
                    "rank "
                            + worldRank
                            + " of a world of "
                            + worldSize
                            + " ranks: expected zero or more and less than the ranks");
        }
        if (groups < 1 || worldSize % groups != 0) {
            throw new IllegalArgumentException(
                    worldSize
                            + " ranks cannot form "
                            + groups
                            + " equal groups: the number of groups must divide the ranks");
        }
        int size = worldSize / groups;
        return new Group(worldRank / size, worldRank / size * size, size);
    }

    /** The rank within this group of the world's rank {@code worldRank}. */
    public int memberOf(int worldRank) {
        if (worldRank < first || worldRank >= first + size) {
            throw new IllegalArgumentException(
                    "rank "
                            + worldRank
                            + " is not in the group of ranks "
                            + first
                            + " to "
                            + (first + size - 1));
        }
        return worldRank - first;
    }

    /** The world's rank of this group's rank {@code member}. */
    public int worldRank(int member) {
        if (member < 0 || member >= size) {
            throw new IllegalArgumentException(
                    "member "
                            + member
                            + " of a group of "
                            + size
                            + " ranks: expected zero or more and less than the ranks");
        }
        return first + member;
    }
}
