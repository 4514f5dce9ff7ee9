package dev.weft.search;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.Reduction;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * What ranks can do with plans. It decides which ways to gather and to sum are candidates: for
 * auto, {@code weft plan}, sweeps and simulated runs alike. Immutable.
 *
 * @param hosts which ranks share memory
 */
public record Device(Hosts hosts, Set<Ability> abilities) {

    /** Something that a way to gather or to sum may need. */
    public enum Ability {
        /** Ranks of a host multiply what lies in each other's memory. */
        READ_PEERS,
        /** Ranks send rows of A that they have, or have got. */
        SEND_ROWS,
        /** Ranks send sums while they multiply. */
        SEND_SUMS,
        /** Ranks add what arrives to their own sums and pass it on. */
        ADD_ON_THE_WAY
    }

    /** In the order in which equals are preferred. */
    private static final List<Algorithm> GATHERS =
            List.of(
                    Algorithm.DIRECT,
                    Algorithm.MESH_PUSH,
                    Algorithm.MESH_PULL,
                    Algorithm.BIDIRECTIONAL_RING,
                    Algorithm.RING,
                    Algorithm.SEQUENTIAL);

    private static final List<Reduction> SUMS =
            List.of(
                    Reduction.DIRECT,
                    Reduction.HIERARCHICAL,
                    Reduction.CHAIN,
                    Reduction.MESH_PUSH,
                    Reduction.RING,
                    Reduction.SEQUENTIAL);

    public Device {
        abilities = Set.copyOf(abilities);
    }

    public static Device of(Hosts hosts, Ability... abilities) {
        return new Device(hosts, Set.of(abilities));
    }

    /** Threads or processes that can do everything, as far as {@code reads} allows it. */
    static Device general(Hosts hosts, boolean reads) {
        Set<Ability> all = EnumSet.allOf(Ability.class);
        if (!reads) {
            all.remove(Ability.READ_PEERS);
        }
        return new Device(hosts, all);
    }

    /** Ranks on CPUs. */
    public static Device ofCpus(Hosts hosts) {
        return general(hosts, true);
    }

    public List<Algorithm> gathers() {
        return GATHERS.stream().filter(this::can).toList();
    }

    /** The ways to sum, in whatever order. */
    public List<Reduction> sums() {
        return SUMS.stream().filter(this::can).toList();
    }

    /** The ways to sum in that order. */
    public List<Reduction> sums(Reduction.Order order) {
        return sums().stream().filter(each -> each.gives(order)).toList();
    }

    private boolean can(Algorithm algorithm) {
        return switch (algorithm) {
            case DIRECT -> has(Ability.READ_PEERS) && hosts.count() == 1;
            case MESH_PUSH, BIDIRECTIONAL_RING, RING -> has(Ability.SEND_ROWS);
            case MESH_PULL, SEQUENTIAL, AUTO -> true;
        };
    }

    private boolean can(Reduction reduction) {
        return switch (reduction) {
            case DIRECT -> has(Ability.READ_PEERS) && hosts.count() == 1;
            case HIERARCHICAL -> has(Ability.READ_PEERS) && hosts.isHierarchical();
            case CHAIN, MESH_PUSH -> has(Ability.SEND_SUMS);
            case RING -> has(Ability.ADD_ON_THE_WAY);
            case SEQUENTIAL, AUTO -> true;
        };
    }

    private boolean has(Ability needed) {
        return abilities.contains(needed);
    }
}
