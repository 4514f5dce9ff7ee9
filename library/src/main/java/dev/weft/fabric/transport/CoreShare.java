package dev.weft.fabric.transport;

/**
 * How a rank shares the cores of its process with other ranks, of any group.
 *
 * @param index this rank's number among those that share its cores
 * @param sharers the number of ranks that share them
 * @param place this rank's number among all ranks of its host
 */
public record CoreShare(int index, int sharers, int place) {

    /** The number of cores for each rank, at least one. */
    public int cores() {
        return Math.max(1, Runtime.getRuntime().availableProcessors() / sharers);
    }
}
