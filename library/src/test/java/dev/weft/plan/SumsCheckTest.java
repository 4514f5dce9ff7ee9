package dev.weft.plan;

import static dev.weft.plan.PlanEdits.edit;
import static dev.weft.plan.PlanEdits.first;
import static dev.weft.plan.PlanEdits.set;
import static dev.weft.plan.PlanEdits.twice;
import static dev.weft.plan.PlanEdits.without;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/** Plans that sum pass, and those of which one thing is wrong are refused. */
class SumsCheckTest {

    private static final int MOST_RANKS = 8;
    private static final int CASES = 12;

    /** Three ranks with two chunks each. */
    private static final Chunks CHUNKS = chunks(Shards.of(4, 4, 4), 2);

    private static final Shards INNER = Shards.of(3, 3, 3);

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "AUTO")
    void everyReductionPasses(Reduction reduction) {
        Random random = new Random(reduction.ordinal());
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            for (int i = 0; i < CASES; i++) {
                Chunks chunks = chunks(shards(random, ranks, i), 1 + random.nextInt(4));
                Shards inner = shards(random, ranks, i / 2);
                Hosts hosts =
                        reduction == Reduction.DIRECT ? Hosts.one(ranks) : hosts(random, ranks);
                for (boolean all : new boolean[] {false, true}) {
                    List<RankPlan> plans = reduction.plans(chunks, inner, all, hosts);
                    PlanChecker.check(plans, hosts, inner, all);
                    PlanChecker.check(plans, hosts);
                    assertEquals(
                            Optional.empty(), PlanChecker.checkGiven(plans, hosts, inner, all));
                }
            }
        }
    }

    /** Equal ones first, then none at all, then any. */
    private static Shards shards(Random random, int ranks, int number) {
        long[] rows = new long[ranks];
        for (int r = 0; r < ranks; r++) {
            boolean empty = number == 1 || number > 1 && random.nextInt(3) == 0;
            rows[r] = empty ? 0 : number == 0 ? 5 : random.nextInt(9);
        }
        return Shards.of(rows);
    }

    static Hosts hosts(Random random, int ranks) {
        List<Integer> sizes = new ArrayList<>();
        for (int left = ranks; left > 0; left -= sizes.getLast()) {
            sizes.add(1 + random.nextInt(left));
        }
        return new Hosts(sizes);
    }

    private static Chunks chunks(Shards rows, long chunkRows) {
        return Chunks.byRows(rows, 6, chunkRows, chunkRows);
    }

    @Test
    void findsAMissingTransfer() {
        refuses(
                "rank 1, source 0, chunk 0: sums go on from zero, expected those of rank 0",
                edited(Reduction.CHAIN, false, 0, 0, without(0)),
                false);
        refuses(
                "rank 0, source 0, chunk 1: never gets whole sums",
                edited(Reduction.CHAIN, false, 2, 0, without(2)),
                false);
        refuses(
                "rank 0, source 0, chunk 0: never gets the sums of rank 2",
                edited(Reduction.MESH_PUSH, false, 2, 0, without(0)),
                false);
        refuses(
                "rank 2, source 0, chunk 1: never gets whole sums",
                edited(Reduction.DIRECT, true, 0, 0, without(3)),
                true);
    }

    @Test
    void findsRowsForTheWrongRanks() {
        refuses("never gets whole sums", plans(Reduction.CHAIN, false), true);
        refuses(
                "rank 1, source 0, chunk 0: gets whole sums of rows that are not its own",
                plans(Reduction.CHAIN, true),
                false);
    }

    @Test
    void findsAnotherOrderOfK() {
        Chunks chunks = chunks(Shards.of(2, 0), 2);
        Shards inner = Shards.of(3, 3);
        List<RankPlan> plans = Reduction.CHAIN.plans(chunks, inner, false);
        Lane back = new Lane(0, List.of(transfer(1, 0, 0, 0, Reduction.PARTIAL)));
        List<RankPlan> reversed =
                List.of(
                        plans.get(0).withLanes(List.of(), List.of(back)),
                        plans.get(1).withLanes(List.of(back), List.of()));
        PlanEdits.assertFault(
                "rank 0, source 0, chunk 0: sums go on from those of rank 1, expected zero",
                () -> PlanChecker.check(reversed, Hosts.one(2), inner, false));
        // Rank 0 sends to rank 2 what rank 1 is to go on from.
        List<RankPlan> skips = edited(Reduction.CHAIN, false, 0, 0, edit(0, to(2)));
        skips = PlanEdits.matchArrivals(PlanEdits.editLane(skips, 1, 0, without(0)));
        refuses(
                "rank 1, source 0, chunk 0: sums go on from zero, expected those of rank 0",
                skips,
                false);
        // One rank's sums are to be added, and others' are continued.
        refuses(
                "rank 1, source 0, chunk 0: sums go on from those of rank 0, expected zero",
                edited(
                        Reduction.CHAIN,
                        false,
                        1,
                        0,
                        first(transfer(1, 0, 0, 0, Reduction.slotOf(1)))),
                false);
        refuses(
                "rank 1, source 1, chunk 0: sums go on from those of rank 0, expected zero",
                edited(
                        Reduction.MESH_PUSH,
                        false,
                        0,
                        0,
                        first(transfer(0, 1, 1, 0, Reduction.PARTIAL))),
                false);
    }

    @Test
    void findsAnotherOrderOfRanks() {
        refuses(
                "rank 0, source 0, chunk 0: never gets the sums of rank 1",
                edited(Reduction.RING, false, 0, 0, without(0)),
                false);
        // Rank 2 gets those of rank 0 by themselves, and adds all in rank order.
        PlanChecker.check(
                edited(Reduction.RING, false, 0, 0, edit(0, to(2))), Hosts.one(3), INNER, false);
        Transfer back = transfer(2, 0, 0, 0, Reduction.slotOf(2));
        List<RankPlan> late = PlanEdits.editLane(plans(Reduction.RING, false), 0, 0, without(0));
        // Rank 1 passes its sums to rank 2, and that one both to rank 0, which adds them to its
        // own.
        late = PlanEdits.editLane(late, 2, 0, set(0, back));
        refuses(
                "rank 0, source 0, chunk 0: brings the sums of ranks [1, 2] as one, after those of"
                        + " ranks [0]",
                PlanEdits.matchArrivals(late),
                false);
        refuses(
                "rank 0, source 0, chunk 0: its sums go in a circle",
                edited(Reduction.RING, false, 2, 0, set(0, back)),
                false);
        PlanEdits.assertFault(
                "rank 1, source 0, chunk 0: sends sums that it does not have",
                () ->
                        PlanChecker.check(
                                PlanEdits.editPlan(
                                        plans(Reduction.MESH_PUSH, false),
                                        1,
                                        p -> p.withConsumption(List.of())),
                                Hosts.one(3),
                                Shards.of(3, 0, 3),
                                false));
    }

    @Test
    void findsWholeSumsFromARankThatHasNone() {
        refuses(
                "rank 1, source 0, chunk 0: sends whole sums, which are with rank 2",
                PlanEdits.matchArrivals(
                        PlanEdits.editLane(
                                edited(Reduction.CHAIN, false, 2, 0, without(0)),
                                1,
                                0,
                                first(transfer(1, 0, 0, 0, Reduction.WHOLE)))),
                false);
    }

    @Test
    void findsTwoWriters() {
        refuses(
                "rank 2, source 0, chunk 0: ranks 0 and 1 both write its sums to one place",
                edited(Reduction.CHAIN, false, 0, 0, edit(0, to(2))),
                false);
        refuses(
                "rank 1, source 1, chunk 0: ranks 0 and 0 both write its sums to one place",
                edited(Reduction.MESH_PUSH, false, 0, 0, twice(0)),
                false);
        refuses(
                "rank 2, source 0, chunk 0: gets whole sums from rank 1, and has them already",
                edited(Reduction.CHAIN, true, 1, 0, first(transfer(1, 2, 0, 0, Reduction.WHOLE))),
                true);
    }

    /** Ranks 0 and 1 wait for each other's whole sums, and those of rank 2 go nowhere. */
    @Test
    void findsACycle() {
        List<RankPlan> circle =
                PlanEdits.matchArrivals(
                        PlanEdits.editLane(
                                edited(Reduction.CHAIN, true, 2, 0, without(0)),
                                1,
                                0,
                                first(transfer(1, 0, 0, 0, Reduction.WHOLE))));
        refuses(
                "rank 0, source 0, chunk 0: waits forever: transfer from rank 0 to rank 1 needs the"
                        + " chunk to arrive whole at rank 0",
                circle,
                true);
    }

    /** One lane for both: whole sums are to be handed on before the parts that they are made of. */
    @Test
    void findsLanesThatWaitForEachOther() {
        List<RankPlan> plans = plans(Reduction.CHAIN, true);
        List<Transfer> sums = plans.get(0).lanes().get(0).transfers();
        List<Transfer> whole = plans.get(0).lanes().get(1).transfers();
        List<Transfer> both = new ArrayList<>(whole);
        both.addAll(sums);
        List<RankPlan> merged =
                PlanEdits.matchArrivals(
                        PlanEdits.editPlan(
                                plans,
                                0,
                                p -> p.withLanes(List.of(new Lane(0, both)), p.arrivals())));
        refuses(
                "rank 0, source 0, chunk 0: waits forever: transfer from rank 0 to rank 1 needs the"
                        + " chunk to arrive whole at rank 0",
                merged,
                true);
    }

    @Test
    void findsBlocksThatAreNotMultipliedOnce() {
        refuses(
                "rank 1, source 0, chunk 0: is never multiplied",
                PlanEdits.editConsumption(plans(Reduction.CHAIN, false), 1, without(0)),
                false);
        refuses(
                "rank 1, source 2, chunk 0: is multiplied more than once",
                PlanEdits.editConsumption(plans(Reduction.MESH_PUSH, false), 1, twice(0)),
                false);
        refuses(
                "rank 1, source 0, chunk 0: is multiplied more than once over the same part of K",
                PlanEdits.editConsumption(
                        plans(Reduction.DIRECT, false), 1, first(CHUNKS.block(0, 0))),
                false);
        refuses(
                "rank 1, source 0, chunk 0: RowBlock",
                PlanEdits.editConsumption(
                        plans(Reduction.CHAIN, false), 1, set(0, new RowBlock(0, 0, 4, 0, 2))),
                false);
        PlanEdits.assertFault(
                "rank 1, source 0, chunk 0: is multiplied without a part of K",
                () ->
                        PlanChecker.check(
                                plans(Reduction.CHAIN, false),
                                Hosts.one(3),
                                Shards.of(3, 0, 3),
                                false));
    }

    @Test
    void findsEndsThatDisagree() {
        List<RankPlan> plans = plans(Reduction.CHAIN, false);
        refuses(
                "rank 1, source 2, chunk 1: the ends disagree: gets it without expecting it",
                PlanEdits.editArrivals(plans, 1, 0, without(5)),
                false);
        refuses(
                "rank 1, source 1, chunk 0: the ends disagree: expects Transfer[from=0, to=1,",
                PlanEdits.editArrivals(plans, 1, 0, PlanEdits.swap(0, 1)),
                false);
        refuses(
                "rank 1: has an empty lane among its arrivals",
                PlanEdits.editArrivals(
                        plans,
                        1,
                        0,
                        items -> {
                            items.clear();
                            return items;
                        }),
                false);
    }

    @Test
    void findsTransfersThatAreNotWellFormed() {
        refusesTransfer("leaves the group of 3 ranks", t -> PlanEdits.withEnds(t, 0, 3));
        refusesTransfer("goes from a rank to itself", t -> PlanEdits.withEnds(t, 1, 1));
        refusesTransfer("the shard has 2 chunks", t -> PlanEdits.withChunk(t, 2));
        refusesTransfer("tag is 1, expected 0", t -> PlanEdits.withTag(t, 1));
        refusesTransfer("credit is 1, expected 0", t -> PlanEdits.withCredit(t, 1));
        refusesTransfer(
                "slot is 4, expected 0, 1 or the sender's, 2", t -> PlanEdits.withSlot(t, 4));
        refusesTransfer(
                "is not put by its sender", t -> PlanEdits.withInitiator(t, Initiator.RECEIVER));
    }

    private static void refusesTransfer(String message, UnaryOperator<Transfer> edit) {
        refuses(
                "rank 0, source 0, chunk",
                PlanEdits.editLane(plans(Reduction.CHAIN, false), 0, 0, edit(0, edit)),
                false);
        refuses(
                message,
                PlanEdits.editLane(plans(Reduction.CHAIN, false), 0, 0, edit(0, edit)),
                false);
    }

    @Test
    void findsPlansThatCannotRun() {
        PlanEdits.assertFault(
                "rank 1, source 0, chunk 0: is never multiplied",
                () ->
                        PlanChecker.check(
                                plans(Reduction.DIRECT, false), Hosts.apart(3), INNER, false));
        refuses(
                "rank 0: storage SUMS with Pacing[gatherFirst=true, anyGather=true",
                plans(Reduction.CHAIN, false).stream()
                        .map(p -> p.with(p.name(), Pacing.GATHER_FIRST))
                        .toList(),
                false);
        Chunks blocks = Chunks.byRows(Shards.of(4, 4, 4), 6, 2, 4);
        List<RankPlan> merged =
                plans(Reduction.CHAIN, false).stream()
                        .map(
                                p ->
                                        new RankPlan(
                                                p.name(),
                                                Storage.SUMS,
                                                p.rank(),
                                                blocks,
                                                p.lanes(),
                                                p.arrivals(),
                                                p.consumption(),
                                                p.releases(),
                                                p.pacing()))
                        .toList();
        refuses("rank 0: the rows of rank 0 have 2 chunks and 1 blocks", merged, false);
        List<RankPlan> gather = PlanCases.plans(Algorithm.RING, CHUNKS, 1);
        refuses("rank 0: storage is GATHERED, expected sums", gather, false);
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        PlanChecker.check(
                                plans(Reduction.CHAIN, false),
                                Hosts.one(3),
                                Shards.of(1, 1),
                                false));
    }

    private static List<RankPlan> plans(Reduction reduction, boolean all) {
        return reduction.plans(CHUNKS, INNER, all);
    }

    private static List<RankPlan> edited(
            Reduction reduction,
            boolean all,
            int rank,
            int lane,
            UnaryOperator<List<Transfer>> edit) {
        return PlanEdits.matchArrivals(PlanEdits.editLane(plans(reduction, all), rank, lane, edit));
    }

    private static Transfer transfer(int from, int to, int source, int chunk, int slot) {
        int tag = CHUNKS.tag(source, chunk);
        return new Transfer(from, to, source, chunk, tag, Initiator.SENDER, slot, 0);
    }

    private static UnaryOperator<Transfer> to(int rank) {
        return t -> PlanEdits.withEnds(t, t.from(), rank);
    }

    private static void refuses(String message, List<RankPlan> plans, boolean all) {
        PlanEdits.assertFault(
                message, () -> PlanChecker.check(plans, Hosts.one(plans.size()), INNER, all));
    }
}
