package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/** Writes the plans of a {@link Reduction}. Ranks without a part of K multiply nothing. */
final class ReductionPlans {

    private static final Pacing PRODUCT_FIRST = new Pacing(true, false, 0, null);

    private final Reduction reduction;
    private final Chunks chunks;
    private final boolean all;
    private final int ranks;
    private final Hosts hosts;

    private final List<Integer> multiplying;

    /** By rank and lane: partial sums, whole sums, and whole sums for ranks of the same host. */
    private final List<List<List<Transfer>>> lanes = new ArrayList<>();

    /** By rank, in the order in which they are multiplied. */
    private final List<List<RowBlock>> blocks = new ArrayList<>();

    ReductionPlans(Reduction reduction, Chunks chunks, Shards inner, boolean all, Hosts hosts) {
        this.reduction = reduction;
        this.chunks = chunks;
        this.all = all;
        this.ranks = chunks.shards().ranks();
        this.hosts = hosts;
        this.multiplying = Reduction.parts(inner);
        for (int rank = 0; rank < ranks; rank++) {
            lanes.add(List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>()));
            blocks.add(new ArrayList<>());
        }
    }

    List<RankPlan> plans() {
        switch (reduction) {
            case DIRECT -> direct();
            case CHAIN, RING -> chain(Hosts.apart(ranks));
            case HIERARCHICAL -> chain(hosts);
            case MESH_PUSH, SEQUENTIAL -> mesh();
            case AUTO -> throw new IllegalArgumentException("auto has no plans of its own");
        }
        List<List<Lane>> numbered = lanes.stream().map(ReductionPlans::numbered).toList();
        boolean inPlace = reduction == Reduction.DIRECT || reduction == Reduction.HIERARCHICAL;
        List<RankPlan> plans = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            plans.add(
                    new RankPlan(
                            reduction.label(),
                            inPlace ? Storage.SUMS_IN_PLACE : Storage.SUMS,
                            rank,
                            chunks,
                            numbered.get(rank),
                            arrivals(rank, numbered),
                            blocks.get(rank),
                            List.of(),
                            reduction == Reduction.SEQUENTIAL
                                    ? PRODUCT_FIRST
                                    : Pacing.BLOCK_BY_BLOCK));
        }
        return plans;
    }

    private static List<Lane> numbered(List<List<Transfer>> transfers) {
        List<Lane> numbered = new ArrayList<>();
        for (List<Transfer> lane : transfers) {
            if (!lane.isEmpty()) {
                numbered.add(new Lane(numbered.size(), lane));
            }
        }
        return numbered;
    }

    private static List<Lane> arrivals(int rank, List<List<Lane>> numbered) {
        List<Lane> arrivals = new ArrayList<>();
        for (List<Lane> ofRank : numbered) {
            for (Lane lane : ofRank) {
                List<Transfer> here =
                        lane.transfers().stream().filter(t -> t.to() == rank).toList();
                if (!here.isEmpty()) {
                    arrivals.add(new Lane(lane.index(), here));
                }
            }
        }
        return arrivals;
    }

    private void direct() {
        for (int rank = 0; rank < ranks; rank++) {
            for (int c = 0; c < chunks.count(rank); c++) {
                blocks.get(rank).add(chunks.block(rank, c));
                if (all) {
                    toEverybody(rank, c, 0);
                }
            }
        }
    }

    /**
     * Passes blocks from group to group; a group is ranks that share memory, or a single rank.
     * Owners alternate, so that all of them get whole rows early; so do the ranks of a group. The
     * rows of the last group come last: they need not travel after that.
     */
    private void chain(Hosts groups) {
        List<Integer> having = multiplying.stream().map(groups::hostOf).distinct().toList();
        List<RowBlock> order = new ArrayList<>();
        for (int c = 0; c < mostChunks(); c++) {
            for (int owner = 0; owner < ranks; owner++) {
                if (c < chunks.count(owner)) {
                    order.add(chunks.block(owner, c));
                }
            }
        }
        if (!all) {
            int last = having.getLast();
            order.sort(Comparator.comparing(block -> groups.hostOf(block.source()) == last));
        }
        for (int turn = 0; turn < order.size(); turn++) {
            pass(groups, having, order.get(turn), turn);
        }
    }

    /** Passes one block from group to group, and then to the ranks that are to have it. */
    private void pass(Hosts groups, List<Integer> having, RowBlock block, int turn) {
        int owner = block.source();
        int chunk = block.firstChunk();
        int before = -1;
        for (int group : having) {
            int rank = taker(groups, group, turn);
            blocks.get(rank).add(block);
            if (before >= 0) {
                boolean adds = reduction == Reduction.RING;
                int slot = adds ? Reduction.slotOf(before) : Reduction.PARTIAL;
                send(before, 0, rank, owner, chunk, slot);
            }
            before = rank;
        }
        if (all) {
            around(groups, before, turn, owner, chunk);
        } else if (owner != before) {
            int lane = groups.shareMemory(before, owner) ? 2 : 1;
            send(before, lane, owner, owner, chunk, Reduction.WHOLE);
        }
    }

    private static int taker(Hosts groups, int group, int turn) {
        return groups.first(group) + turn % groups.size(group);
    }

    /** Sends whole sums to one rank of each group in turn, which distributes them there. */
    private void around(Hosts groups, int last, int turn, int owner, int chunk) {
        int from = last;
        for (int hop = 0; hop < groups.count(); hop++) {
            int group = (groups.hostOf(last) + hop) % groups.count();
            int rank = taker(groups, group, turn);
            if (hop > 0) {
                send(from, 1, rank, owner, chunk, Reduction.WHOLE);
            }
            for (int mate = 1; mate < groups.size(group); mate++) {
                int to = taker(groups, group, turn + mate);
                send(rank, 2, to, owner, chunk, Reduction.WHOLE);
            }
            from = rank;
        }
    }

    /** Others' rows first, starting with the next rank's: they still have to travel. */
    private void mesh() {
        for (int rank : multiplying) {
            for (int c = 0; c < mostChunks(); c++) {
                for (int distance = 1; distance < ranks; distance++) {
                    int owner = (rank + distance) % ranks;
                    if (c < chunks.count(owner)) {
                        blocks.get(rank).add(chunks.block(owner, c));
                        send(rank, 0, owner, owner, c, Reduction.slotOf(rank));
                    }
                }
            }
            for (int c = 0; c < chunks.count(rank); c++) {
                blocks.get(rank).add(chunks.block(rank, c));
            }
        }
        for (int rank = 0; all && rank < ranks; rank++) {
            for (int c = 0; c < chunks.count(rank); c++) {
                toEverybody(rank, c, 1);
            }
        }
    }

    private void toEverybody(int rank, int chunk, int lane) {
        for (int distance = 1; distance < ranks; distance++) {
            send(rank, lane, (rank + distance) % ranks, rank, chunk, Reduction.WHOLE);
        }
    }

    private int mostChunks() {
        return IntStream.range(0, ranks).map(chunks::count).max().orElseThrow();
    }

    private void send(int from, int lane, int to, int owner, int chunk, int slot) {
        int tag = chunks.tag(owner, chunk);
        lanes.get(from)
                .get(lane)
                .add(new Transfer(from, to, owner, chunk, tag, Initiator.SENDER, slot, 0));
    }
}
