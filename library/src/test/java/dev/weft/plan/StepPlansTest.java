package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.InvalidPlanException;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Placement;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import dev.weft.plan.step.SumOrder;
import dev.weft.plan.step.SumOrder.Promise;
import dev.weft.plan.step.Worker;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/**
 * Every plan of Weft's can be said in steps; one checker proves them all, and finds every fault.
 */
class StepPlansTest {

    private static final long COLS = PlanCases.COLS;

    @Test
    void everyGatherComputesTheWholeProduct() {
        for (int ranks = 1; ranks <= 5; ranks++) {
            for (long seed = 0; seed < 5; seed++) {
                Chunks chunks = PlanCases.randomChunks(1000 * ranks + seed, ranks);
                for (int lanes = 1; lanes <= 3; lanes++) {
                    for (Algorithm algorithm : PlanCases.algorithms()) {
                        String name = "%s, seed %d".formatted(algorithm.label(), seed);
                        checkGather(name, algorithm, chunks, lanes, Hosts.one(ranks));
                    }
                    checkGather(
                            "ping-pong, seed " + seed,
                            Algorithm.pingPongRing(),
                            chunks,
                            lanes,
                            Hosts.one(ranks));
                    GatherWriter sliced = Algorithm.slicedRing(2, lanes, seed % 2 == 0);
                    checkGather("sliced, seed " + seed, sliced, chunks, lanes, Hosts.one(ranks));
                }
            }
        }
    }

    @Test
    void everyGatherOverHostsComputesTheWholeProduct() {
        for (long seed = 0; seed < 40; seed++) {
            Random random = new Random(seed);
            Hosts hosts = PlanCases.randomHosts(random, 2 + random.nextInt(2), 3);
            Chunks chunks = PlanCases.randomChunks(seed, hosts.ranks());
            for (Algorithm algorithm : PlanCases.hierarchicalAlgorithms()) {
                checkGather(
                        "%s, seed %d, hosts %s".formatted(algorithm.label(), seed, hosts),
                        algorithm,
                        chunks,
                        1 + random.nextInt(4),
                        hosts);
            }
        }
    }

    private static void checkGather(
            String name, GatherWriter writer, Chunks chunks, int lanes, Hosts hosts) {
        GatherRequest request = PlanCases.request(chunks, lanes, hosts);
        Set<SumOrder> orders =
                StepChecker.check(writer.plans(request), request.placement(), hosts::shareMemory);
        assertTrue(
                orders.stream().allMatch(order -> order.promise() == Promise.AS_ON_ONE_RANK),
                () -> name + ": " + orders);
    }

    private static Placement gather(Chunks chunks) {
        return PlanCases.request(chunks, 1, Hosts.one(chunks.shards().ranks())).placement();
    }

    private static Placement reduce(Shards rows, Shards kParts, boolean all) {
        Chunks chunks = Chunks.byRows(rows, COLS, 1, 1);
        return new ReductionRequest(chunks, kParts, all, Order.WHOLE).placement();
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "AUTO")
    void everyReductionSumsInItsOrder(Reduction reduction) {
        Random random = new Random(reduction.ordinal());
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int i = 0; i < 12; i++) {
                Shards rows = PlanCases.randomShards(random, ranks, 9);
                Shards kParts = PlanCases.randomShards(random, ranks, 9);
                Chunks chunks = Chunks.byRows(rows, COLS, 1 + random.nextInt(4), 4);
                Hosts hosts =
                        reduction == Reduction.DIRECT ? Hosts.one(ranks) : hosts(random, ranks);
                for (Order order : Order.values()) {
                    if (reduction.gives(order)) {
                        checkReduction(reduction, order, chunks, kParts, hosts);
                    }
                }
            }
        }
    }

    private static Hosts hosts(Random random, int ranks) {
        List<Integer> sizes = new ArrayList<>();
        for (int left = ranks; left > 0; left -= sizes.getLast()) {
            sizes.add(1 + random.nextInt(left));
        }
        return new Hosts(sizes);
    }

    private static void checkReduction(
            Reduction reduction, Order order, Chunks chunks, Shards kParts, Hosts hosts) {
        for (boolean all : new boolean[] {false, true}) {
            List<StepPlan> plans =
                    reduction.plans(new ReductionRequest(chunks, kParts, all, order, hosts));
            checkOrder(plans, order, chunks, kParts, all, hosts, reduction.label());
        }
    }

    private static void checkOrder(
            List<StepPlan> plans,
            Order order,
            Chunks chunks,
            Shards kParts,
            boolean all,
            Hosts hosts,
            String writer) {
        Placement placement = reduce(chunks.shards(), kParts, all);
        Set<SumOrder> orders = StepChecker.check(plans, placement, hosts::shareMemory);
        String name = "%s %s of %s over %s".formatted(writer, order, chunks.shards(), kParts);
        assertTrue(orders.size() <= 1, () -> name + ": " + orders);
        boolean oneRank = Reduction.parts(kParts).size() == 1;
        Promise promised =
                oneRank && order != Order.BY_RANK_BF16
                        ? Promise.AS_ON_ONE_RANK
                        : switch (order) {
                            case WHOLE -> Promise.AS_ON_ONE_RANK;
                            case BY_RANK -> Promise.BY_PARTS;
                            case BY_RANK_BF16 -> oneRank ? Promise.OWN : Promise.BY_PARTS_ROUNDED;
                            case OWN -> Promise.OWN;
                        };
        orders.forEach(found -> assertEquals(promised, found.promise(), name));
    }

    @ParameterizedTest
    @EnumSource(names = "OWN", mode = EnumSource.Mode.EXCLUDE)
    void linkedRanksSumInTheOrderThatIsWanted(Order order) {
        Random random = new Random(order.ordinal());
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int i = 0; i < 12; i++) {
                Shards rows = PlanCases.randomShards(random, ranks, 9);
                Shards kParts = PlanCases.randomShards(random, ranks, 9);
                Chunks chunks = Chunks.byRows(rows, COLS, 1 + random.nextInt(4), 4);
                for (boolean all : new boolean[] {false, true}) {
                    List<StepPlan> plans =
                            Reduction.linkedSteps(new ReductionRequest(chunks, kParts, all, order));
                    checkOrder(plans, order, chunks, kParts, all, Hosts.one(ranks), "linked");
                }
            }
        }
    }

    /** A step that is left out, a wait that is forgotten, a signal that is never raised. */
    @Test
    void everyFaultIsFound() {
        Chunks chunks = Chunks.byRows(Shards.of(4, 3, 5), 6, 2, 2);
        Shards kParts = Shards.of(3, 2, 4);
        Placement gather = gather(chunks);
        int faults = 0;
        for (Algorithm algorithm : PlanCases.algorithms()) {
            List<StepPlan> plans = PlanCases.plans(algorithm, chunks, 2);
            faults += countFaults(algorithm.label(), plans, gather);
        }
        List<StepPlan> ring = PlanCases.plans(Algorithm.pingPongRing(), chunks, 1);
        faults += countFaults("ping-pong", ring, gather);
        for (Reduction reduction : Reduction.values()) {
            for (boolean all : new boolean[] {false, true}) {
                if (reduction != Reduction.AUTO) {
                    List<StepPlan> plans =
                            reduction.plans(
                                    new ReductionRequest(
                                            Chunks.byRows(chunks.shards(), COLS, 2, 2),
                                            kParts,
                                            all,
                                            reduction.order()));
                    Placement reduce = reduce(chunks.shards(), kParts, all);
                    faults += countFaults(reduction.label(), plans, reduce);
                }
            }
        }
        assertTrue(faults > 1000, "only " + faults + " faults were tried");
    }

    private static int countFaults(String name, List<StepPlan> plans, Placement placement) {
        StepChecker.check(plans, placement, (rank, other) -> true);
        int faults = 0;
        for (StepPlan plan : plans) {
            for (int w = 0; w < plan.workers().size(); w++) {
                List<Step> steps = plan.workers().get(w).steps();
                for (int s = 0; s < steps.size(); s++) {
                    Step step = steps.get(s);
                    List<List<Step>> broken = new ArrayList<>();
                    broken.add(List.of());
                    broken.add(List.of(step, step));
                    for (int i = 0; needsItsWaits(step) && i < step.waits().size(); i++) {
                        List<Signal> fewer = new ArrayList<>(step.waits());
                        fewer.remove(i);
                        broken.add(List.of(step.with(fewer, step.signal())));
                    }
                    for (List<Step> instead : broken) {
                        List<StepPlan> edited = replaced(plans, plan.rank(), w, s, instead);
                        assertThrows(
                                InvalidPlanException.class,
                                () -> StepChecker.check(edited, placement, (r, o) -> true),
                                () -> "%s: %s instead of %s".formatted(name, instead, step));
                        faults++;
                    }
                }
            }
        }
        return faults;
    }

    /** A product of the rank's own rows may have to wait for the gather, but not for its inputs. */
    private static boolean needsItsWaits(Step step) {
        return !(step instanceof Step.Multiply multiply)
                || multiply.resume()
                || multiply.a().buffer() != StepPlan.A;
    }

    private static List<StepPlan> replaced(
            List<StepPlan> plans, int rank, int worker, int index, List<Step> instead) {
        return plans.stream()
                .map(plan -> plan.rank() == rank ? replaced(plan, worker, index, instead) : plan)
                .toList();
    }

    private static StepPlan replaced(StepPlan plan, int worker, int index, List<Step> instead) {
        List<Worker> workers = new ArrayList<>(plan.workers());
        List<Step> steps = new ArrayList<>(workers.get(worker).steps());
        steps.remove(index);
        steps.addAll(index, instead);
        workers.set(worker, new Worker(workers.get(worker).kind(), steps));
        return new StepPlan(plan.rank(), plan.buffers(), workers);
    }

    /** A lane that counts its copies to a rank, as Ascend's does, instead of a flag for each. */
    @Test
    void aCounterStandsForAllFlagsBeforeIt() {
        Chunks chunks = Chunks.byRows(Shards.of(6, 6, 6), 6, 2, 2);
        List<StepPlan> flags = PlanCases.plans(Algorithm.MESH_PUSH, chunks, 2);
        Map<Signal, Signal> counters = new HashMap<>();
        for (StepPlan plan : flags) {
            for (int w = 0; w < plan.workers().size(); w++) {
                Map<Integer, Integer> copies = new HashMap<>();
                for (Step step : plan.workers().get(w).steps()) {
                    if (step instanceof Step.Copy copy) {
                        int count = copies.merge(copy.to().rank(), 1, Integer::sum);
                        int word = 1000 + 10 * plan.rank() + w;
                        counters.put(
                                copy.signal(),
                                new Signal(plan.rank(), copy.to().rank(), word, count));
                    }
                }
            }
        }
        List<StepPlan> counted =
                flags.stream()
                        .map(plan -> edited(plan, step -> withCounters(step, counters)))
                        .toList();
        Placement placement = gather(chunks);
        StepChecker.check(counted, placement, (r, o) -> true);
        int faults = 0;
        for (StepPlan plan : counted) {
            List<Step> products = plan.workers().getLast().steps();
            for (int s = 0; s < products.size(); s++) {
                Step step = products.get(s);
                if (!step.waits().isEmpty()) {
                    Signal wait = step.waits().getFirst();
                    List<Signal> less = List.of(wait.withValue(wait.value() - 1));
                    List<StepPlan> early =
                            replaced(
                                    counted,
                                    plan.rank(),
                                    plan.workers().size() - 1,
                                    s,
                                    List.of(step.with(less, step.signal())));
                    assertThrows(
                            InvalidPlanException.class,
                            () -> StepChecker.check(early, placement, (r, o) -> true));
                    faults++;
                }
            }
        }
        assertEquals(18, faults);
    }

    private static Step withCounters(Step step, Map<Signal, Signal> counters) {
        return step.with(
                step.waits().stream().map(w -> counters.getOrDefault(w, w)).toList(),
                counters.getOrDefault(step.signal(), step.signal()));
    }

    private static StepPlan edited(StepPlan plan, UnaryOperator<Step> edit) {
        return new StepPlan(
                plan.rank(),
                plan.buffers(),
                plan.workers().stream()
                        .map(w -> new Worker(w.kind(), w.steps().stream().map(edit).toList()))
                        .toList());
    }

    /**
     * A reduce-scatter that Weft does not have: in each round a rank sends half of its sums to a
     * partner and adds the other half, the lower rank's first.
     */
    @Test
    void recursiveHalvingIsAWriter() {
        for (int ranks : new int[] {1, 2, 4, 8, 16}) {
            Shards rows = Shards.even(5 * ranks + 3, ranks);
            Shards kParts = Shards.even(7 * ranks + 1, ranks);
            Placement placement = reduce(rows, kParts, false);
            StepPlanBuilder builder = new StepPlanBuilder(placement);
            List<Part> sums = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                sums.add(builder.buffer(rank, "sums", Buffer.Kind.SUMS, rows.totalRows(), COLS));
                builder.multiply(rank, 0, builder.a(rank), builder.b(rank), sums.get(rank), false);
            }
            for (int span = ranks / 2; span >= 1; span /= 2) {
                halve(builder, rows, sums, span);
            }
            for (int rank = 0; rank < ranks; rank++) {
                Part own = sums.get(rank).rows(rows.firstRow(rank), rows.rows(rank));
                builder.add(rank, 0, List.of(own), builder.c(rank));
            }
            Set<SumOrder> orders = StepChecker.check(builder.build(), placement, (r, o) -> r == o);
            assertEquals(1, orders.size(), () -> "one order for all rows: " + orders);
            Promise promise = orders.iterator().next().promise();
            assertEquals(
                    ranks == 1
                            ? Promise.AS_ON_ONE_RANK
                            : ranks == 2 ? Promise.BY_PARTS : Promise.OWN,
                    promise);
        }
    }

    private static void halve(StepPlanBuilder builder, Shards rows, List<Part> sums, int span) {
        for (int rank = 0; rank < sums.size(); rank++) {
            int first = rank / span * span;
            long from = rows.firstRow(first);
            long end = rows.firstRow(first + span - 1) + rows.rows(first + span - 1);
            Part kept = sums.get(rank).rows(from, end - from);
            Part arrived =
                    builder.buffer(rank, "round " + span, Buffer.Kind.SUMS, end - from, COLS);
            int partner = rank ^ span;
            builder.copy(partner, 0, sums.get(partner).rows(from, end - from), arrived);
            builder.add(
                    rank,
                    0,
                    rank < partner ? List.of(kept, arrived) : List.of(arrived, kept),
                    kept);
        }
    }

    @Test
    void workersThatWaitForEachOtherAreFound() {
        Chunks chunks = Chunks.byRows(Shards.of(4, 4), 6, 2, 2);
        List<StepPlan> plans = PlanCases.plans(Algorithm.MESH_PULL, chunks, 1);
        Placement placement = gather(chunks);
        List<StepPlan> circle = plans;
        for (int rank : new int[] {0, 1}) {
            Step first = plans.get(rank).workers().getFirst().steps().getFirst();
            Signal other = plans.get(1 - rank).workers().getFirst().steps().getFirst().signal();
            circle =
                    replaced(
                            circle,
                            rank,
                            0,
                            0,
                            List.of(first.with(List.of(other), first.signal())));
        }
        List<StepPlan> broken = circle;
        InvalidPlanException fault =
                assertThrows(
                        InvalidPlanException.class,
                        () -> StepChecker.check(broken, placement, (r, o) -> true));
        assertTrue(fault.getMessage().endsWith("waits forever"), fault.getMessage());
    }

    @Test
    void readingAnotherHostsMemoryIsFound() {
        Chunks chunks = Chunks.byRows(Shards.of(4, 4), 6, 2, 2);
        List<StepPlan> plans = PlanCases.plans(Algorithm.DIRECT, chunks, 1);
        Placement placement = gather(chunks);
        InvalidPlanException fault =
                assertThrows(
                        InvalidPlanException.class,
                        () -> StepChecker.check(plans, placement, Hosts.apart(2)::shareMemory));
        assertTrue(
                fault.getMessage().endsWith("cannot reach the memory of rank 1"),
                fault.getMessage());
    }

    @Test
    void aPlanReadsLikeAProgram() {
        Chunks chunks = Chunks.byRows(Shards.of(2, 2), COLS, 2, 2);
        List<StepPlan> plans =
                Reduction.CHAIN.plans(
                        new ReductionRequest(chunks, Shards.of(4, 5), false, Order.WHOLE));
        assertEquals(
                List.of(
                        "rank 0: A [4, 4], B [4, 3], C [2, 3], sums so far [4, 3], whole sums [2, 3], own sums [0, 3]",
                        "  mover 0",
                        "    copy 0:sums so far[0..2, 0..3] to 1:sums so far[0..2, 0..3] after 0.0 then 1.0",
                        "    copy 0:sums so far[2..4, 0..3] to 1:sums so far[2..4, 0..3] after 0.1 then 1.2",
                        "  multiplier 1",
                        "    multiply 0:A[0..2, 0..4] by 0:B[0..4, 0..3] into 0:sums so far[0..2, 0..3] then 0.0",
                        "    multiply 0:A[2..4, 0..4] by 0:B[0..4, 0..3] into 0:sums so far[2..4, 0..3] then 0.1",
                        "    add 0:whole sums[0..2, 0..3] into 0:C[0..2, 0..3] after 0.2",
                        "rank 1: A [4, 5], B [5, 3], C [2, 3], sums so far [4, 3], whole sums [0, 3], own sums [0, 3]",
                        "  mover 0",
                        "  mover 1",
                        "    copy 1:sums so far[0..2, 0..3] to 0:whole sums[0..2, 0..3] after 1.1 then 0.2",
                        "  multiplier 2",
                        "    multiply 1:A[0..2, 0..5] by 1:B[0..5, 0..3] into 1:sums so far[0..2, 0..3], going on after 1.0 then 1.1",
                        "    multiply 1:A[2..4, 0..5] by 1:B[0..5, 0..3] into 1:sums so far[2..4, 0..3], going on after 1.2 then 1.3",
                        "    add 1:sums so far[2..4, 0..3] into 1:C[0..2, 0..3] after 1.3"),
                StepPlan.describe(plans));
    }

    @Test
    void ordersSayWhatTheyPromise() {
        SumOrder first = SumOrder.over(null, 0, 4);
        SumOrder second = SumOrder.over(null, 4, 9);
        assertEquals(Promise.AS_ON_ONE_RANK, SumOrder.over(first, 4, 9).promise());
        assertEquals(Promise.BY_PARTS, SumOrder.added(List.of(first, second)).promise());
        assertEquals(Promise.OWN, SumOrder.added(List.of(second, first)).promise());
        assertTrue(SumOrder.added(List.of(second, first)).isWhole(9));
        assertEquals(
                List.of(false, true, false),
                IntStream.of(8, 9, 10)
                        .mapToObj(k -> SumOrder.over(first, 4, 9).isWhole(k))
                        .toList());
        assertEquals("(k 0..4) + (k 4..9)", SumOrder.added(List.of(first, second)).text());
    }
}
