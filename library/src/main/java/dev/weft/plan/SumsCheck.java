package dev.weft.plan;

import dev.weft.plan.EndsCheck.LaneName;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction.Order;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Checks plans that sum: every chunk is summed over all of K, in the order that the reduction
 * promises, and whole sums reach every rank that is to have them exactly once.
 *
 * @param groups ranks that sum over the same part of K: those of a host, or single ranks
 * @param having the groups that have a part of K; the first group if none has any
 * @param multipliers by group and tag: the rank that multiplies the chunk
 * @param all whether every rank gets all rows
 */
record SumsCheck(
        List<RankPlan> plans,
        Chunks chunks,
        Hosts groups,
        Order order,
        BitSet having,
        Integer[][] multipliers,
        boolean all,
        SumsIndex index) {

    static boolean sums(RankPlan plan) {
        return plan.storage() == Storage.SUMS || plan.storage() == Storage.SUMS_IN_PLACE;
    }

    /** Assumes that K is spread over the ranks that multiply, and that rows go wherever any do. */
    static void check(List<RankPlan> plans, Hosts hosts) {
        List<Integer> multiplying =
                plans.stream().filter(p -> !p.consumption().isEmpty()).map(RankPlan::rank).toList();
        boolean toOthers =
                plans.stream()
                        .flatMap(plan -> plan.lanes().stream())
                        .flatMap(lane -> lane.transfers().stream())
                        .anyMatch(t -> t.slot() == Reduction.WHOLE && t.to() != t.source());
        check(plans, hosts, multiplying, toOthers);
    }

    static void check(List<RankPlan> plans, Hosts hosts, Shards inner, boolean all) {
        if (inner.ranks() != plans.size()) {
            throw new IllegalArgumentException(
                    "K over %d ranks, plans of %d".formatted(inner.ranks(), plans.size()));
        }
        check(plans, hosts, Reduction.parts(inner), all);
    }

    private static void check(
            List<RankPlan> plans, Hosts hosts, List<Integer> multiplying, boolean all) {
        RankPlan first = plans.getFirst();
        boolean inPlace = first.storage() == Storage.SUMS_IN_PLACE;
        Hosts groups = inPlace ? hosts : Hosts.apart(plans.size());
        BitSet having = new BitSet();
        multiplying.forEach(rank -> having.set(groups.hostOf(rank)));
        SumsCheck check =
                new SumsCheck(
                        plans,
                        first.chunks(),
                        groups,
                        Order.of(plans),
                        having,
                        new Integer[groups.count()][first.chunks().total()],
                        all,
                        SumsIndex.of(plans));
        check.checkCut();
        check.checkEnds();
        plans.forEach(check::checkBlocks);
        check.forEachChunk(check::checkMultiplied);
        check.forEachChunk(check::checkOrder);
        check.forEachChunk(check::checkWhole);
        SumsRun.run(plans, check.index);
    }

    /** An action for each chunk of each owner. */
    private interface ForChunk {
        void accept(int source, int chunk);
    }

    private void forEachChunk(ForChunk action) {
        for (int source = 0; source < plans.size(); source++) {
            for (int chunk = 0; chunk < chunks.count(source); chunk++) {
                action.accept(source, chunk);
            }
        }
    }

    /** A block is one chunk, so that it can be sent as soon as it is multiplied. */
    private void checkCut() {
        for (int source = 0; source < plans.size(); source++) {
            if (chunks.colChunks() != 1 || chunks.blocks(source) != chunks.count(source)) {
                throw new PlanException(
                        0,
                        "the rows of rank %d have %d chunks and %d blocks, expected one chunk of all columns for each block"
                                .formatted(source, chunks.count(source), chunks.blocks(source)));
            }
        }
    }

    private void checkEnds() {
        List<Map<LaneName, List<Transfer>>> delivered = new ArrayList<>();
        plans.forEach(plan -> delivered.add(new LinkedHashMap<>()));
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                LaneName name = new LaneName(plan.rank(), lane.index());
                for (Transfer transfer : lane.transfers()) {
                    delivered
                            .get(transfer.to())
                            .computeIfAbsent(name, n -> new ArrayList<>())
                            .add(transfer);
                }
            }
        }
        for (RankPlan plan : plans) {
            Map<LaneName, List<Transfer>> here = delivered.get(plan.rank());
            plan.arrivals().forEach(lane -> checkEnds(plan.rank(), lane, here));
            if (!here.isEmpty()) {
                throw unexpected(plan.rank(), here.values().iterator().next().getFirst());
            }
        }
    }

    private static void checkEnds(
            int rank, Lane arrivals, Map<LaneName, List<Transfer>> delivered) {
        if (arrivals.transfers().isEmpty()) {
            throw new PlanException(rank, "has an empty lane among its arrivals");
        }
        int from = arrivals.transfers().getFirst().from();
        List<Transfer> list = delivered.remove(new LaneName(from, arrivals.index()));
        Iterator<Transfer> brought =
                list == null ? List.<Transfer>of().iterator() : list.iterator();
        for (Transfer expected : arrivals.transfers()) {
            Transfer next = brought.hasNext() ? brought.next() : null;
            if (!expected.equals(next)) {
                throw new PlanException(
                        rank,
                        expected,
                        "the ends disagree: expects %s from lane %d of rank %d, gets %s"
                                .formatted(expected, arrivals.index(), from, next));
            }
        }
        if (brought.hasNext()) {
            throw unexpected(rank, brought.next());
        }
    }

    private static PlanException unexpected(int rank, Transfer transfer) {
        return new PlanException(rank, transfer, "the ends disagree: gets it without expecting it");
    }

    private void checkBlocks(RankPlan plan) {
        int group = groups.hostOf(plan.rank());
        for (RowBlock block : plan.consumption()) {
            int source = block.source();
            boolean known =
                    source >= 0
                            && source < plans.size()
                            && block.firstChunk() >= 0
                            && block.firstChunk() < chunks.count(source);
            if (!known || !block.equals(chunks.block(source, block.firstChunk()))) {
                throw new PlanException(plan.rank(), block, block + " is not a chunk");
            }
            if (!having.get(group)) {
                throw new PlanException(plan.rank(), block, "is multiplied without a part of K");
            }
            int tag = chunks.tag(source, block.firstChunk());
            if (multipliers[group][tag] != null) {
                throw new PlanException(
                        plan.rank(), block, "is multiplied more than once over the same part of K");
            }
            multipliers[group][tag] = plan.rank();
        }
    }

    private void checkMultiplied(int source, int chunk) {
        for (int group = 0; group < groups.count(); group++) {
            if (having.get(group) && multipliers[group][chunks.tag(source, chunk)] == null) {
                throw new PlanException(groups.first(group), source, chunk, "is never multiplied");
            }
        }
    }

    /** What every rank's sums of a chunk start from, and in which order they are added up. */
    private void checkOrder(int source, int chunk) {
        int tag = chunks.tag(source, chunk);
        int before = -1;
        for (int rank = 0; rank < plans.size(); rank++) {
            boolean goesOn = multiplies(rank, tag) && order == Order.WHOLE;
            checkStart(rank, index.partial(rank, tag), goesOn ? before : -1, source, chunk);
            before = goesOn ? rank : before;
            Transfer own = index.own(rank, tag);
            if (own != null && !multiplies(rank, tag) && !index.adds(rank, tag)) {
                throw new PlanException(rank, own, "sends sums that it does not have");
            }
        }
        if (order == Order.BY_RANK) {
            checkAdded(source, chunk);
        }
    }

    private boolean multiplies(int rank, int tag) {
        Integer multiplier = multipliers[groups.hostOf(rank)][tag];
        return multiplier != null && multiplier == rank;
    }

    private void checkAdded(int source, int chunk) {
        int tag = chunks.tag(source, chunk);
        List<Integer> parts = having.stream().mapToObj(group -> multipliers[group][tag]).toList();
        int end = origin(tag);
        for (int part : parts) {
            if (end(part, tag) != end) {
                throw new PlanException(end, source, chunk, "never gets the sums of rank " + part);
            }
        }
        List<Integer> added = added(end, tag);
        if (!added.equals(parts)) {
            throw new PlanException(
                    end,
                    source,
                    chunk,
                    "the sums of ranks %s are added in this order, expected %s"
                            .formatted(added, parts));
        }
    }

    /** The rank at which the sums of {@code rank} end: it does not pass them on. */
    private int end(int rank, int tag) {
        int end = rank;
        for (int hop = 0; index.own(end, tag) != null; hop++) {
            if (hop == plans.size()) {
                throw new PlanException(rank, index.own(end, tag), "its sums go in a circle");
            }
            end = index.own(end, tag).to();
        }
        return end;
    }

    /**
     * The ranks whose sums a rank's sums contain, in the order in which they are added. Sums of
     * several ranks can only come first: addition is not associative.
     */
    private List<Integer> added(int rank, int tag) {
        List<Integer> added = new ArrayList<>();
        for (int from = 0; from < plans.size(); from++) {
            Transfer own = index.own(from, tag);
            if (from == rank && multiplies(rank, tag)) {
                added.add(rank);
            } else if (own != null && own.to() == rank) {
                List<Integer> before = added(from, tag);
                if (!added.isEmpty() && before.size() > 1) {
                    throw new PlanException(
                            rank,
                            own,
                            "brings the sums of ranks %s as one, after those of ranks %s"
                                    .formatted(before, added));
                }
                added.addAll(before);
            }
        }
        return added;
    }

    /** The rank that has whole sums of a chunk first. */
    private int origin(int tag) {
        return order == Order.BY_RANK
                ? end(multipliers[having.nextSetBit(0)][tag], tag)
                : multipliers[having.length() - 1][tag];
    }

    /** {@code before} is the rank whose sums it continues; -1 if it starts from zero. */
    private static void checkStart(int rank, Transfer got, int before, int source, int chunk) {
        int from = got == null ? -1 : got.from();
        if (from != before) {
            throw new PlanException(
                    rank,
                    source,
                    chunk,
                    "sums go on from %s, expected %s".formatted(start(from), start(before)));
        }
    }

    private static String start(int rank) {
        return rank < 0 ? "zero" : "those of rank " + rank;
    }

    private void checkWhole(int source, int chunk) {
        int tag = chunks.tag(source, chunk);
        int origin = origin(tag);
        for (int rank = 0; rank < plans.size(); rank++) {
            Transfer got = index.whole(rank, tag);
            boolean gets = rank != origin && (all || rank == source);
            if (got == null && gets) {
                throw new PlanException(rank, source, chunk, "never gets whole sums");
            }
            if (got != null && !gets) {
                throw new PlanException(
                        rank,
                        got,
                        rank == origin
                                ? "gets whole sums from rank %d, and has them already"
                                        .formatted(got.from())
                                : "gets whole sums of rows that are not its own");
            }
            if (got != null && got.from() != origin && index.whole(got.from(), tag) == null) {
                throw new PlanException(
                        got.from(), got, "sends whole sums, which are with rank " + origin);
            }
        }
    }
}
