package dev.weft.plan;

import dev.weft.plan.GatherView.Lane;
import dev.weft.plan.GatherView.Move;
import java.util.List;

/**
 * No directed link carries more than its algorithm's optimum; {@link AlgorithmCheck} has the list.
 */
final class LinkCheck {

    private final Algorithm algorithm;
    private final Chunks chunks;
    private final Shards shards;
    private final Hosts hosts;

    private LinkCheck(Algorithm algorithm, GatherView plan, Hosts hosts) {
        this.algorithm = algorithm;
        this.chunks = plan.chunks();
        this.shards = chunks.shards();
        this.hosts = hosts;
    }

    /** Flat plans are those of ranks that are all {@link Hosts#apart}. */
    static void check(Algorithm algorithm, List<GatherView> plans, Hosts hosts) {
        LinkCheck links = new LinkCheck(algorithm, plans.getFirst(), hosts);
        long[][] limits = links.limits();
        long[][] loads = new long[plans.size()][plans.size()];
        for (GatherView plan : plans) {
            for (Lane lane : plan.lanes()) {
                for (Move transfer : lane.moves()) {
                    links.load(transfer, loads, limits);
                }
            }
        }
    }

    private void load(Move transfer, long[][] loads, long[][] limits) {
        int from = transfer.from();
        int to = transfer.to();
        Chunk chunk = chunks.chunk(transfer.source(), transfer.chunk());
        loads[from][to] += chunk.rows() * chunk.cols();
        // Limits are kept in half rows: half a shard need not be a whole number of rows.
        if (2 * loads[from][to] > limits[from][to] * chunks.cols()) {
            throw new IllegalArgumentException(
                    "%s overloads the link from rank %d to rank %d: %s needs at most %s rows there"
                            .formatted(
                                    transfer, from, to, algorithm.label(), limits[from][to] / 2.0));
        }
    }

    /** In half rows: what every shard adds to the links on its way. */
    private long[][] limits() {
        int ranks = hosts.ranks();
        long[][] limits = new long[ranks][ranks];
        for (int source = 0; source < ranks; source++) {
            long halfRows = 2 * shards.rows(source);
            int home = hosts.hostOf(source);
            for (int host = 0; host < hosts.count(); host++) {
                int gateway = hosts.gateway(source, host);
                addMates(limits[gateway], host, halfRows);
                if (isMesh() && host != home) {
                    limits[source][gateway] += halfRows;
                }
            }
            if (algorithm == Algorithm.RING) {
                addWay(limits, source, 1, hosts.count() - 1, halfRows);
            } else if (algorithm == Algorithm.BIDIRECTIONAL_RING) {
                addBothWays(limits, source, halfRows);
            }
        }
        return limits;
    }

    private boolean isMesh() {
        return switch (algorithm) {
            case MESH_PUSH, MESH_PULL, SEQUENTIAL -> true;
            case RING, BIDIRECTIONAL_RING, DIRECT, AUTO -> false;
        };
    }

    /** Within a host; a limit for a rank's way to itself does no harm. */
    private void addMates(long[] limits, int host, long halfRows) {
        for (int mate = hosts.first(host); mate < hosts.first(host) + hosts.size(host); mate++) {
            limits[mate] += halfRows;
        }
    }

    private void addBothWays(long[][] limits, int source, long halfRows) {
        int count = hosts.count();
        if (count == 2) {
            addWay(limits, source, 1, 1, halfRows);
            return;
        }
        int shorter = (count - 1) / 2;
        for (int direction = -1; direction <= 1; direction += 2) {
            addWay(limits, source, direction, shorter, halfRows);
            if (count % 2 == 0) {
                long segment = Math.min(shards.rows(source), chunks.segmentRows(source));
                addStep(limits, source, direction, count / 2, halfRows / 2 + 2 * segment);
            }
        }
    }

    /** From gateway to gateway, up to the host at {@code distance}. */
    private void addWay(long[][] limits, int source, int direction, int distance, long halfRows) {
        for (int step = 1; step <= distance; step++) {
            addStep(limits, source, direction, step, halfRows);
        }
    }

    /** The last step to the host at {@code distance}. */
    private void addStep(long[][] limits, int source, int direction, int distance, long halfRows) {
        int from = hosts.gateway(source, host(source, direction * (distance - 1)));
        int to = hosts.gateway(source, host(source, direction * distance));
        limits[from][to] += halfRows;
    }

    private int host(int source, int distance) {
        return Math.floorMod(hosts.hostOf(source) + distance, hosts.count());
    }
}
