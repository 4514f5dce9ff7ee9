package dev.weft.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;

/**
 * How the ranks of a group are placed on hosts. Each host has consecutive ranks, which share its
 * memory; hosts are connected by a network. Immutable and thread-safe.
 */
public final class Hosts {

    private final List<Integer> sizes;

    /** {@code firsts[h]} is the first rank of host h, {@code firsts[count]} the number of ranks. */
    private final int[] firsts;

    private final int[] hostOfRank;

    /** Hosts with the given numbers of ranks, one or more each. */
    public Hosts(List<Integer> sizes) {
        this.sizes = List.copyOf(sizes);
        if (sizes.isEmpty() || sizes.stream().anyMatch(size -> size < 1)) {
            throw new IllegalArgumentException(
                    "hosts of %s ranks: expected at least one host, of one rank or more"
                            .formatted(sizes));
        }
        this.firsts = new int[sizes.size() + 1];
        for (int host = 0; host < sizes.size(); host++) {
            firsts[host + 1] = Math.addExact(firsts[host], sizes.get(host));
        }
        this.hostOfRank = new int[ranks()];
        for (int host = 0; host < count(); host++) {
            Arrays.fill(hostOfRank, first(host), firsts[host + 1], host);
        }
    }

    /** All ranks on one host. */
    public static Hosts one(int ranks) {
        return new Hosts(List.of(ranks));
    }

    /** Every rank on its own host. */
    public static Hosts apart(int ranks) {
        if (ranks < 1) {
            throw new IllegalArgumentException(
                    ranks + " ranks, each on a host of its own: expected at least one");
        }
        return new Hosts(Collections.nCopies(ranks, 1));
    }

    public static Hosts of(int... sizes) {
        return new Hosts(Arrays.stream(sizes).boxed().toList());
    }

    /** Ranks per host. */
    public List<Integer> sizes() {
        return sizes;
    }

    /** The number of hosts. */
    public int count() {
        return sizes.size();
    }

    public int ranks() {
        return firsts[count()];
    }

    /** Ranks of one host. */
    public int size(int host) {
        return firsts[host + 1] - firsts[host];
    }

    /** The first rank of one host. */
    public int first(int host) {
        return firsts[host];
    }

    /** The host of one rank. */
    public int hostOf(int rank) {
        return hostOfRank[rank];
    }

    /**
     * The hosts of some of the ranks, by their numbers here. Ranks of one host that are not
     * consecutive count as several hosts.
     */
    public Hosts among(List<Integer> ranks) {
        List<Integer> some = new ArrayList<>();
        for (int i = 0; i < ranks.size(); i++) {
            if (i > 0 && shareMemory(ranks.get(i - 1), ranks.get(i))) {
                some.set(some.size() - 1, some.getLast() + 1);
            } else {
                some.add(1);
            }
        }
        return new Hosts(some);
    }

    public boolean shareMemory(int rank, int other) {
        return hostOf(rank) == hostOf(other);
    }

    /**
     * The rank of {@code host} at which the shard of {@code source} enters it: the one at the same
     * position on its host, modulo the number of ranks there. On its own host that is the source
     * itself.
     */
    public int gateway(int source, int host) {
        int place = source - first(hostOf(source));
        return first(host) + place % size(host);
    }

    /** The ranks of {@code host} whose shards enter the host of {@code gateway} there, in order. */
    int[] sources(int gateway, int host) {
        int home = hostOf(gateway);
        int place = gateway - first(home);
        int[] sources = new int[Math.ceilDiv(Math.max(0, size(host) - place), size(home))];
        for (int i = 0; i < sources.length; i++) {
            sources[i] = first(host) + place + i * size(home);
        }
        return sources;
    }

    /** Whether some ranks share memory and others do not. */
    public boolean isHierarchical() {
        return count() > 1 && ranks() > count();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Hosts hosts && sizes.equals(hosts.sizes);
    }

    @Override
    public int hashCode() {
        return sizes.hashCode();
    }

    /** {@code 2+2+1} for five ranks on three hosts. */
    @Override
    public String toString() {
        return sizes.stream().map(String::valueOf).collect(Collectors.joining("+"));
    }
}
