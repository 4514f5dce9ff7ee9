package dev.weft.plan;

import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Writes plans. Pure and thread-safe: the same arguments give the same plan on every rank and every
 * machine. Writing one rank's plan costs no more than what that rank sends, receives and consumes.
 * {@link PlanChecker} accepts every set of plans that is written here.
 */
final class Planner {

    /** Small, since this much is left to do when the last rows arrive. */
    private static final long STEP_ROWS = 32;

    private Planner() {}

    /** The plans of all ranks; each is written on demand. */
    static List<RankPlan> plans(Algorithm algorithm, Chunks chunks, int lanes, Hosts hosts) {
        return new WrittenPlans(
                chunks.shards().ranks(),
                hosts,
                Objects.hash(algorithm.label(), lanes, chunks),
                rank -> plan(algorithm, chunks, lanes, rank, hosts));
    }

    /** A writer for rings that use two buffers. */
    static PlanWriter pingPongRing() {
        return new PlanWriter() {
            @Override
            public String label() {
                return Algorithm.RING.label();
            }

            @Override
            public List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
                return new WrittenPlans(
                        chunks.shards().ranks(),
                        hosts,
                        Objects.hash("ping-pong", lanes, chunks),
                        rank -> pingPongRing(chunks, lanes, rank, hosts));
            }

            @Override
            public boolean isSymmetric() {
                return true;
            }
        };
    }

    /**
     * The writer with this name: one of Weft's own, or one that a jar on the class path provides.
     *
     * @param guard makes errors of others' writers name them
     */
    static <W> W named(
            String label,
            List<? extends W> own,
            ServiceLoader<W> others,
            UnaryOperator<W> guard,
            Function<W, String> labels) {
        List<W> all = new ArrayList<>(own);
        PlanException broken = null;
        Iterator<W> found = others.iterator();
        for (boolean more = true; more; ) {
            try {
                more = found.hasNext();
                if (more) {
                    all.add(guard.apply(found.next()));
                }
            } catch (ServiceConfigurationError | LinkageError e) {
                broken = PlanException.notLoaded(label, e);
            }
        }
        if (broken != null && all.stream().noneMatch(one -> labels.apply(one).equals(label))) {
            throw broken;
        }
        return named(label, all, labels);
    }

    /** The writer with this name among {@code all}. */
    static <W> W named(String label, List<W> all, Function<W, String> labels) {
        return all.stream()
                .filter(writer -> labels.apply(writer).equals(label))
                .findFirst()
                .orElseThrow(() -> unknown(label, all.stream().map(labels)));
    }

    private static IllegalArgumentException unknown(String label, Stream<String> known) {
        return new IllegalArgumentException(
                "unknown algorithm '%s': expected one of %s"
                        .formatted(label, known.collect(Collectors.joining(", "))));
    }

    /**
     * What {@code rank} does when each rank has {@code lanes} communication workers. If some ranks
     * share memory and others do not, rings and meshes connect hosts: every chunk crosses the
     * network once to each other host, to its {@link Hosts#gateway} there, which forwards it to the
     * other ranks of its host. {@link Algorithm#SEQUENTIAL} ignores hosts, {@link Algorithm#DIRECT}
     * needs a single one, and {@link Algorithm#AUTO} must have been resolved before.
     */
    static RankPlan plan(Algorithm algorithm, Chunks chunks, int lanes, int rank, Hosts hosts) {
        int ranks = chunks.shards().ranks();
        checkRank(rank, ranks);
        if (hosts.ranks() != ranks) {
            throw new IllegalArgumentException(
                    "hosts of " + hosts + " ranks for " + ranks + " shards: expected as many");
        }
        int laneCount = lanes(algorithm, hosts, lanes);
        String name = algorithm.label();
        Pacing pacing = pacing(algorithm, hosts);
        if (algorithm == Algorithm.DIRECT) {
            return withoutTransfers(name, Storage.IN_PLACE, chunks, rank, pacing);
        }
        if (ranks == 1) {
            return withoutTransfers(name, Storage.GATHERED, chunks, rank, pacing);
        }
        Routing routing =
                isHierarchical(algorithm, hosts)
                        ? hierarchical(algorithm, chunks, hosts, laneCount)
                        : flat(algorithm, chunks, laneCount);
        return new RoutedPlan(name, Storage.GATHERED, chunks, routing, pacing)
                .write(rank, laneCount);
    }

    /**
     * Over a network in steps: otherwise the whole last block would be left once everything
     * arrived.
     */
    static Pacing pacing(Algorithm algorithm, Hosts hosts) {
        if (algorithm == Algorithm.SEQUENTIAL) {
            return Pacing.GATHER_FIRST;
        }
        return hosts.count() > 1 ? Pacing.inSteps(STEP_ROWS) : Pacing.BLOCK_BY_BLOCK;
    }

    /** Half of the lanes, rounded up, are for the network; those it cannot use go to memory. */
    private static Routing hierarchical(
            Algorithm algorithm, Chunks chunks, Hosts hosts, int lanes) {
        int half = lanes - lanes / 2;
        boolean isRing = algorithm == Algorithm.RING || algorithm == Algorithm.BIDIRECTIONAL_RING;
        int networkLanes = isRing ? half : MeshRouting.lanes(hosts.count(), half);
        Routing network = routing(algorithm, chunks, hosts, networkLanes);
        return new HostRouting(chunks, hosts, network, networkLanes, lanes - networkLanes);
    }

    /** The routing if all ranks share memory, or none do. */
    private static Routing flat(Algorithm algorithm, Chunks chunks, int lanes) {
        int ranks = chunks.shards().ranks();
        return algorithm == Algorithm.MESH_PUSH && lanes < ranks - 1
                ? new DealtMesh(chunks, lanes)
                : routing(algorithm, chunks, Hosts.apart(ranks), lanes);
    }

    private static Routing routing(Algorithm algorithm, Chunks chunks, Hosts hosts, int lanes) {
        return switch (algorithm) {
            case RING -> RingRouting.oneWay(chunks, hosts, lanes);
            case BIDIRECTIONAL_RING -> RingRouting.bothWays(chunks, hosts, lanes);
            case MESH_PUSH -> new MeshRouting(chunks, hosts, lanes, Initiator.SENDER, false);
            case MESH_PULL -> new MeshRouting(chunks, hosts, lanes, Initiator.RECEIVER, false);
            case SEQUENTIAL -> new MeshRouting(chunks, hosts, lanes, Initiator.RECEIVER, true);
            case AUTO, DIRECT -> throw new AssertionError(algorithm);
        };
    }

    private static boolean isHierarchical(Algorithm algorithm, Hosts hosts) {
        return hosts.isHierarchical() && algorithm != Algorithm.SEQUENTIAL;
    }

    /**
     * A ring that keeps no gathered A: the shard that arrives in step 1, 2, ... R-1 lands in buffer
     * {@code step % 2}, and from step 3 on only after the receiver has released the shard of two
     * steps before. The operator guarantees that both buffers are free when the call starts. It
     * visits all ranks one by one, whatever their hosts. Each lane carries its segments of every
     * shard, and no lane waits for another one of the same rank.
     */
    static RankPlan pingPongRing(Chunks chunks, int lanes, int rank, Hosts hosts) {
        int ranks = chunks.shards().ranks();
        checkRank(rank, ranks);
        int laneCount = lanes(Algorithm.RING, Hosts.apart(ranks), lanes);
        String name = Algorithm.RING.label();
        Pacing pacing = pacing(Algorithm.RING, hosts);
        if (ranks == 1) {
            return withoutTransfers(name, Storage.PING_PONG, chunks, rank, pacing);
        }
        Routing routing = RingRouting.oneWay(chunks, Hosts.apart(ranks), laneCount);
        return new RoutedPlan(name, Storage.PING_PONG, chunks, routing, pacing)
                .write(rank, laneCount);
    }

    /**
     * How many lanes each rank's plan has if {@code requested} are wanted: none if nothing travels,
     * at least two if there are two directions, and a multiple of the peers if every peer gets the
     * same number. If some ranks share memory and others do not, the network has separate lanes, so
     * there is at least one more: a lane that forwards waits for what the network brings. Memory's
     * lanes may have nothing to carry on a host of few ranks.
     */
    static int lanes(Algorithm algorithm, Hosts hosts, int requested) {
        if (algorithm == Algorithm.DIRECT && hosts.count() > 1) {
            throw new IllegalArgumentException(
                    "direct needs ranks that share memory: these lie on %s hosts of %s ranks, expected one host or another algorithm"
                            .formatted(hosts.count(), hosts));
        }
        if (requested < 1) {
            throw new IllegalArgumentException(
                    "%s lanes for each of %s ranks: expected at least one of each"
                            .formatted(requested, hosts.ranks()));
        }
        if (algorithm == Algorithm.AUTO) {
            throw new IllegalArgumentException(
                    "algorithm auto has no plan of its own: expected the algorithm it stands for");
        }
        if (hosts.ranks() == 1) {
            return 0;
        }
        int network = isHierarchical(algorithm, hosts) ? 1 : 0;
        return switch (algorithm) {
            case RING -> Math.max(network + 1, requested);
            case BIDIRECTIONAL_RING -> Math.max(network + 2, requested);
            case MESH_PUSH, MESH_PULL, SEQUENTIAL ->
                    network > 0
                            ? Math.max(2, requested)
                            : MeshRouting.lanes(hosts.ranks(), requested);
            case DIRECT -> 0;
            case AUTO -> throw new AssertionError(algorithm);
        };
    }

    private static RankPlan withoutTransfers(
            String name, Storage storage, Chunks chunks, int rank, Pacing pacing) {
        return new RankPlan(
                name,
                storage,
                rank,
                chunks,
                List.of(),
                List.of(),
                ConsumptionOrder.rotated(chunks, rank),
                RoutedPlan.releases(storage, rank, chunks.shards().ranks()),
                pacing);
    }

    private static void checkRank(int rank, int ranks) {
        if (rank < 0 || rank >= ranks) {
            throw new IllegalArgumentException(
                    "rank %s of %s ranks: expected zero or more and less than the ranks"
                            .formatted(rank, ranks));
        }
    }
}
