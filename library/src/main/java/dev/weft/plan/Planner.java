package dev.weft.plan;

import dev.weft.plan.GatherSteps.Storage;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Writes plans. Pure and thread-safe: the same arguments give the same plan on every rank and every
 * machine. Writing one rank's plan costs no more than what that rank sends, receives and consumes.
 * {@link dev.weft.plan.step.StepChecker} accepts every set of plans that is written here.
 */
final class Planner {

    /** Small, since this much is left to do when the last rows arrive. */
    private static final long STEP_ROWS = 32;

    private Planner() {}

    /**
     * The writer with this name: one of Weft's own, or one that a jar on the class path provides.
     *
     * @param guard makes errors of others' writers name them
     */
    static <W extends PlanWriter> W named(
            String label, List<? extends W> own, ServiceLoader<W> others, UnaryOperator<W> guard) {
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
        if (broken != null && all.stream().noneMatch(one -> one.label().equals(label))) {
            throw broken;
        }
        return named(label, all);
    }

    /** The writer with this name among {@code all}. */
    static <W extends PlanWriter> W named(String label, List<W> all) {
        return all.stream()
                .filter(writer -> writer.label().equals(label))
                .findFirst()
                .orElseThrow(() -> unknown(label, all.stream().map(PlanWriter::label)));
    }

    private static IllegalArgumentException unknown(String label, Stream<String> known) {
        return new IllegalArgumentException(
                "unknown algorithm '%s': expected one of %s"
                        .formatted(label, known.collect(Collectors.joining(", "))));
    }

    /**
     * The plans of all ranks; each is written on demand. If some ranks share memory and others do
     * not, rings and meshes connect hosts: every chunk crosses the network once to each other host,
     * to its {@link Hosts#gateway} there, which forwards it to the other ranks of its host. {@link
     * Algorithm#SEQUENTIAL} ignores hosts, {@link Algorithm#DIRECT} needs a single one, and {@link
     * Algorithm#AUTO} must have been resolved before.
     */
    static List<StepPlan> plans(Algorithm algorithm, GatherRequest request) {
        Hosts hosts = request.hosts();
        int lanes = lanes(algorithm, hosts, request.lanes());
        boolean inPlace = algorithm == Algorithm.DIRECT;
        return GatherSteps.write(
                request,
                GatherSteps.Form.of(
                        request,
                        inPlace ? Storage.IN_PLACE : Storage.GATHERED,
                        algorithm == Algorithm.SEQUENTIAL,
                        lanes,
                        leastRows(hosts)),
                drafts(request, lanes, () -> routing(algorithm, request, lanes)));
    }

    /** What ranks do, if {@code lanes} are not none, by a routing. */
    static IntFunction<GatherDraft> drafts(
            GatherRequest request, int lanes, Supplier<Routing> routing) {
        Chunks chunks = request.chunks();
        if (lanes == 0) {
            return rank -> GatherDraft.without(ConsumptionOrder.rotated(chunks, rank));
        }
        Routing routes = routing.get();
        return rank -> GatherDraft.of(chunks, routes, rank, lanes);
    }

    /**
     * Over a network in steps: otherwise the whole last block would be left once everything
     * arrived.
     */
    static long leastRows(Hosts hosts) {
        return hosts.count() > 1 ? STEP_ROWS : 0;
    }

    private static Routing routing(Algorithm algorithm, GatherRequest request, int lanes) {
        return isHierarchical(algorithm, request.hosts())
                ? hierarchical(algorithm, request.chunks(), request.hosts(), lanes)
                : flat(algorithm, request.chunks(), lanes);
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
            case MESH_PUSH -> new MeshRouting(chunks, hosts, lanes, false, false);
            case MESH_PULL -> new MeshRouting(chunks, hosts, lanes, true, false);
            case SEQUENTIAL -> new MeshRouting(chunks, hosts, lanes, true, true);
            case AUTO, DIRECT -> throw new AssertionError(algorithm);
        };
    }

    private static boolean isHierarchical(Algorithm algorithm, Hosts hosts) {
        return hosts.isHierarchical() && algorithm != Algorithm.SEQUENTIAL;
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
}
