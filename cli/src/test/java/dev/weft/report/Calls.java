package dev.weft.report;

import dev.weft.cli.simulate.SimTimelines;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Calls to look at: of spans made by hand, of real ranks (threads), and of simulated ones. */
final class Calls {

    /** Rows of a chunk made by hand; it has 10 bytes a row. */
    static final long ROWS = 100;

    static final int K = 24;

    /** Of A as it is multiplied really and in simulation. */
    static final double BYTES_PER_ROW = 2.0 * K;

    private Calls() {}

    /** Rows of one chunk; numbers are those of the group. */
    static Timeline.Span transfer(
            int source, int peer, int to, int chunk, long startNs, long endNs) {
        return new Timeline.Span(
                Kind.TRANSFER,
                source,
                peer,
                to,
                chunk,
                ROWS * chunk,
                ROWS,
                10 * ROWS,
                startNs,
                endNs);
    }

    /** One of several chunks that have the same rows and other columns. */
    static Timeline.Span columns(
            int source, int peer, int to, int chunk, long firstRow, long startNs, long endNs) {
        return new Timeline.Span(
                Kind.TRANSFER, source, peer, to, chunk, firstRow, ROWS, 5 * ROWS, startNs, endNs);
    }

    static Timeline.Span product(
            int source, int member, long firstRow, long rows, long startNs, long endNs) {
        return Timeline.Span.local(Kind.COMPUTE, source, member, firstRow, rows, startNs, endNs);
    }

    static Timeline.Span wait(int source, long startNs, long endNs) {
        return Timeline.Span.local(Kind.WAIT, source, source, 0, ROWS, startNs, endNs);
    }

    static Timeline.Track lane(Timeline.Span... spans) {
        return track("lane-0", spans);
    }

    static Timeline.Track compute(Timeline.Span... spans) {
        return track("compute-0", spans);
    }

    static Timeline.Track track(String name, Timeline.Span... spans) {
        return new Timeline.Track(name, List.of(spans));
    }

    /** A rank that starts at once. */
    static RunRecord.Rank rank(int rank, Timeline.Track... tracks) {
        return rank(rank, 0, tracks);
    }

    /** A rank of a single group. */
    static RunRecord.Rank rank(int rank, long startNs, Timeline.Track... tracks) {
        return rank(rank, 0, rank, startNs, tracks);
    }

    /**
     * @param member number in the group
     */
    static RunRecord.Rank rank(
            int rank, int group, int member, long startNs, Timeline.Track... tracks) {
        long elapsedNs = 0;
        for (Timeline.Track track : tracks) {
            for (Timeline.Span span : track.spans()) {
                elapsedNs = Math.max(elapsedNs, span.endNs());
            }
        }
        Timeline timeline = new Timeline(member, startNs, elapsedNs, List.of(tracks));
        return new RunRecord.Rank(rank, group, 2 * ROWS, ROWS, timeline);
    }

    /** A gather that does not say which way it went, and a product. */
    static CallSpans withoutWays() {
        return call(
                rank(
                        0,
                        track("gather", transfer(0, 0, -1, -1, 0, 10)),
                        compute(product(1, 0, 0, 100, 10, 20))),
                rank(1));
    }

    static CallSpans call(RunRecord.Rank... ranks) {
        return CallSpans.of(List.of(ranks), ranks.length, ranks.length);
    }

    /** How an operator is described further. */
    @FunctionalInterface
    interface Described {
        AllGatherMatmulBuilder as(AllGatherMatmulBuilder builder);
    }

    /** A call of an operator on real ranks, the second one: the first one stages the shards. */
    static CallSpans real(Algorithm algorithm, Shards shards, int groups, Described described) {
        int ranks = shards.ranks() * groups;
        try (World world = World.threads(ranks);
                Arena arena = Arena.ofShared()) {
            Matrix b = Matrix.allocate(arena, DType.FP16, K, 16);
            new NormalData(1, 0).fill(b);
            List<Timeline> timelines =
                    world.call(fabric -> timeline(fabric, algorithm, shards, b, groups, described));
            List<RunRecord.Rank> all = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                int member = rank % shards.ranks();
                all.add(
                        new RunRecord.Rank(
                                rank,
                                rank / shards.ranks(),
                                shards.rows(member),
                                0,
                                timelines.get(rank)));
            }
            return CallSpans.of(all, ranks, shards.ranks());
        }
    }

    private static Timeline timeline(
            Fabric world,
            Algorithm algorithm,
            Shards shards,
            Matrix b,
            int groups,
            Described described) {
        Fabric group = groups > 1 ? world.split(groups) : world;
        try (Arena arena = Arena.ofShared();
                AllGatherMatmul operator =
                        described
                                .as(
                                        AllGatherMatmul.on(group)
                                                .a(shards, DType.FP16)
                                                .b(b)
                                                .algorithm(algorithm)
                                                .computeWorkers(2))
                                .prepare()) {
            Matrix shard = Matrix.allocate(arena, DType.FP16, shards.rows(group.rank()), K);
            new NormalData(2, world.rank()).fill(shard);
            operator.call(shard);
            return operator.call(shard).timeline();
        } finally {
            if (group != world) {
                group.close();
            }
        }
    }

    /** The same on a model of a machine; direct on one whose ranks share their memory. */
    static CallSpans simulated(String machine, Algorithm algorithm, Shards shards, int splits) {
        Problem problem =
                new Problem(
                        shards,
                        K,
                        List.of(16L),
                        DType.FP16,
                        DType.FP32,
                        false,
                        0,
                        1,
                        new Cut(0, splits, 0),
                        Hosts.one(shards.ranks()),
                        Map.of(),
                        null);
        String model = algorithm == Algorithm.DIRECT ? "cpu-100gbe" : machine;
        PlanSearch search = new PlanSearch(Machines.named(model), problem);
        SimTimelines timelines = SimTimelines.of(search, search.candidate(algorithm));
        RunRecord.Rank[] ranks = new RunRecord.Rank[shards.ranks()];
        for (int rank = 0; rank < ranks.length; rank++) {
            ranks[rank] = rank(rank, 0, timelines.of(rank).tracks().toArray(Timeline.Track[]::new));
        }
        return call(ranks);
    }
}
