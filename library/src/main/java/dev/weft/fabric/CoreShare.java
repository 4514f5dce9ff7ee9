package dev.weft.fabric;

/**
 * Ranks, of any group, that run on the same cores.
 *
 * @param index which of them this rank is
 * @param sharers how many they are
 * @param place which of the ranks on its host this rank is, whatever cores they have
 */
public record CoreShare(int index, int sharers, int place) {

    /** Cores for each of them, at least one. */
    public int cores() {
        return Math.max(1, Runtime.getRuntime().availableProcessors() / sharers);
    }
}
