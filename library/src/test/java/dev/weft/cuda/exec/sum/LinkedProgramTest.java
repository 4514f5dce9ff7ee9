package dev.weft.cuda.exec.sum;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.exec.DeviceSteps;
import dev.weft.cuda.exec.sum.LinkedProgram.Item;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What linked ranks queue, in every order that their waits allow. */
class LinkedProgramTest {

    private static final long COLS = 4;

    @ParameterizedTest
    @EnumSource
    void everyRowOfCIsTheSumOfAllPartsInTheirOrder(Order order) {
        for (long seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            int ranks = 1 + random.nextInt(6);
            Shards rows = shards(random, ranks);
            Shards kParts = shards(random, ranks);
            boolean all = random.nextBoolean();
            Chunks chunks = Chunks.byRows(rows, COLS, 1 + random.nextInt(4), 4);
            List<StepPlan> plans =
                    Reduction.linkedSteps(new ReductionRequest(chunks, kParts, all, order));
            new Group(plans, random, "%s, seed %d".formatted(order, seed)).run(kParts);
        }
    }

    /** Recursive halving, which Weft does not have: sums are added where they are, and sent on. */
    @Test
    void aReductionOfOnesOwnIsRunToo() {
        for (long seed = 0; seed < 50; seed++) {
            Random random = new Random(seed);
            int ranks = 1 << random.nextInt(4);
            long[] rows = random.longs(ranks, 0, 9).toArray();
            Shards kParts = Shards.even(ranks, ranks);
            Chunks chunks = Chunks.byRows(Shards.of(rows), COLS, 1 + random.nextInt(4), 4);
            new Group(halving(chunks, kParts), random, "halving, seed " + seed).run(kParts, true);
        }
    }

    private static List<StepPlan> halving(Chunks chunks, Shards kParts) {
        ReductionRequest request = new ReductionRequest(chunks, kParts, false, Order.OWN);
        StepPlanBuilder plan = new StepPlanBuilder(request.placement());
        long m = request.rows().totalRows();
        int ranks = request.ranks();
        List<Part> sums = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            sums.add(plan.buffer(rank, "sums", Buffer.Kind.SUMS, m, COLS));
            for (Chunk chunk : request.allChunks()) {
                Part a = request.rows(plan.a(rank), chunk);
                Part into = request.rows(sums.get(rank), chunk);
                plan.multiply(rank, 0, a, plan.b(rank), into, false);
            }
        }
        for (int round = ranks / 2; round > 0; round /= 2) {
            for (int rank = 0; rank < ranks; rank++) {
                int to = rank ^ round;
                Part place = plan.buffer(to, "from " + rank, Buffer.Kind.SUMS, m, COLS);
                for (Chunk chunk : request.allChunks()) {
                    if (Integer.highestOneBit(rank ^ chunk.source()) == round) {
                        Part own = request.rows(sums.get(to), chunk);
                        Part arrived = request.rows(place, chunk);
                        plan.copy(rank, 0, request.rows(sums.get(rank), chunk), arrived);
                        plan.add(to, 0, List.of(own, arrived), own);
                    }
                }
            }
        }
        for (Chunk chunk : request.allChunks()) {
            int owner = chunk.source();
            Part c = plan.c(owner).rows(chunk.firstRow(), chunk.rows());
            plan.add(owner, 0, List.of(request.rows(sums.get(owner), chunk)), c);
        }
        return plan.build();
    }

    private static Shards shards(Random random, int ranks) {
        long[] rows = random.longs(ranks, 0, 9).map(n -> random.nextInt(4) == 0 ? 0 : n).toArray();
        rows[random.nextInt(ranks)]++;
        return Shards.of(rows);
    }

    /** All chunks of an owner are one launch that writes C itself, and one copy to each peer. */
    @Test
    void whatLiesSideBySideIsOnePiece() {
        Chunks chunks = Chunks.byRows(Shards.of(6, 3), COLS, 2, 2);
        List<StepPlan> plans =
                Reduction.linkedSteps(
                        new ReductionRequest(chunks, Shards.of(16, 32), true, Order.WHOLE));
        LinkedProgram program = LinkedProgram.of(plans, 0, true);
        assertEquals(2, program.items().size());
        assertEquals(
                List.of(
                        new LinkedProgram.Product(
                                List.of(0, 1), 0, new Part(0, StepPlan.C, 0, 6, 0, COLS))),
                program.items().getFirst().products());
        assertEquals(1, program.items().getLast().moves().size());
        assertEquals(6, program.items().getLast().moves().getFirst().into().rows());
        // An epilogue comes in between.
        LinkedProgram finished = LinkedProgram.of(plans, 0, false);
        assertEquals(3, finished.items().size());
        assertEquals(1, finished.items().get(1).sums().size());
    }

    /** All ranks; an element of memory is the list of the parts of K that it sums. */
    private static final class Group {
        private final List<StepPlan> plans;
        private final List<LinkedProgram> programs;
        private final Random random;
        private final String what;
        private final Map<List<Long>, List<Integer>> memory = new HashMap<>();
        private final int[] next;

        Group(List<StepPlan> plans, Random random, String what) {
            this.plans = plans;
            this.random = random;
            this.what = what;
            boolean finishes = random.nextBoolean();
            this.programs =
                    IntStream.range(0, plans.size())
                            .mapToObj(rank -> LinkedProgram.of(plans, rank, finishes))
                            .toList();
            this.next = new int[plans.size()];
        }

        void run(Shards kParts) {
            run(kParts, false);
        }

        /**
         * @param anyOrder whether parts may be summed in another order than that of ranks
         */
        void run(Shards kParts, boolean anyOrder) {
            while (true) {
                List<Integer> possible = new ArrayList<>();
                boolean more = false;
                for (int rank = 0; rank < next.length; rank++) {
                    List<Item> items = programs.get(rank).items();
                    if (next[rank] < items.size()) {
                        more = true;
                        if (areDone(items.get(next[rank]).waits())) {
                            possible.add(rank);
                        }
                    }
                }
                if (!more) {
                    break;
                }
                assertTrue(!possible.isEmpty(), "nothing can go on, " + what);
                int rank = possible.get(random.nextInt(possible.size()));
                take(programs.get(rank).items().get(next[rank]++));
            }
            List<Integer> expected =
                    IntStream.range(0, kParts.ranks())
                            .filter(r -> kParts.rows(r) > 0)
                            .boxed()
                            .toList();
            for (StepPlan plan : plans) {
                assertTrue(areDone(programs.get(plan.rank()).arriving()), what);
                for (long row = 0; row < plan.buffers().get(StepPlan.C).rows(); row++) {
                    Part part = new Part(plan.rank(), StepPlan.C, row, 1, 0, COLS);
                    List<Integer> found = new ArrayList<>(memory.get(at(part, 0)));
                    if (anyOrder) {
                        found.sort(null);
                    }
                    assertEquals(expected, found, what);
                }
            }
        }

        private boolean areDone(List<Raised> waits) {
            return waits.stream()
                    .allMatch(
                            one -> {
                                Item item = programs.get(one.by()).items().get(one.word());
                                assertTrue(item.awaited(), what);
                                return next[one.by()] > one.word();
                            });
        }

        private static List<Long> at(Part part, long row) {
            return List.of((long) part.rank(), (long) part.buffer(), part.firstRow() + row);
        }

        private void take(Item item) {
            for (LinkedProgram.Product product : item.products()) {
                for (long row = 0; row < product.into().rows(); row++) {
                    memory.put(at(product.into(), row), product.parts());
                }
            }
            for (DeviceSteps.RowSum sum : item.sums()) {
                for (long row = 0; row < sum.into().rows(); row++) {
                    List<Integer> parts = new ArrayList<>();
                    for (Part addend : sum.parts()) {
                        List<Integer> found = memory.get(at(addend, row));
                        assertTrue(found != null, "nothing is there yet, " + what);
                        parts.addAll(found);
                    }
                    memory.put(at(sum.into(), row), parts);
                }
            }
            for (DeviceSteps.RowSum move : item.moves()) {
                for (long row = 0; row < move.into().rows(); row++) {
                    Part from = move.parts().getFirst();
                    memory.put(at(move.into(), row), memory.get(at(from, row)));
                }
            }
        }
    }
}
