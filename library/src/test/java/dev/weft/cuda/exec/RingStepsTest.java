package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.exec.RingSteps.Step;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.op.exec.ArrivalPlace;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Copies and products of a ring with two buffers, in every order that events allow. */
class RingStepsTest {

    private static final long COLS = 4;

    /** The plans of a random ring; shards may be empty. */
    private static List<RankPlan> plans(Random random) {
        long[] rows = new long[1 + random.nextInt(8)];
        for (int r = 0; r < rows.length; r++) {
            rows[r] = random.nextInt(5) == 0 ? 0 : 1 + random.nextInt(12);
        }
        long chunkRows = 1 + random.nextInt(6);
        Chunks chunks =
                Chunks.byRows(
                        Shards.of(rows), COLS, chunkRows, chunkRows * (1 + random.nextInt(2)));
        return Algorithm.pingPongRing()
                .plans(chunks, 1 + random.nextInt(3), Hosts.one(rows.length));
    }

    @Test
    void everyShardIsOneStepThatWaitsForAllOfIt() {
        for (long seed = 0; seed < 200; seed++) {
            List<RankPlan> plans = plans(new Random(seed));
            for (RankPlan plan : plans) {
                Shards shards = plan.chunks().shards();
                List<Integer> sources = new ArrayList<>(List.of(plan.rank()));
                sources.addAll(plan.releases());
                sources.removeIf(source -> shards.rows(source) == 0);
                List<Step> steps = RingSteps.steps(CopyList.of(plan));
                assertEquals(sources, steps.stream().map(Step::source).toList(), "seed " + seed);
                for (Step step : steps) {
                    int source = step.source();
                    long rows = shards.rows(source);
                    assertEquals(
                            List.of(
                                    new RowRange(
                                            source,
                                            0,
                                            shards.firstRow(source),
                                            rows,
                                            List.of(),
                                            false)),
                            step.ranges());
                    Set<Integer> flags = new HashSet<>();
                    for (int c = 0; c < plan.chunks().count(source); c++) {
                        flags.add(plan.chunks().tag(source, c));
                    }
                    boolean own = source == plan.rank();
                    assertEquals(own ? Set.of() : flags, Set.copyOf(step.flags()));
                }
            }
        }
    }

    /** Whatever is done first, every product reads the rows of its own shard. */
    @Test
    void noShardIsOverwrittenBeforeItIsMultipliedAndPassedOn() {
        long forwards = 0;
        for (long seed = 0; seed < 400; seed++) {
            Random random = new Random(seed);
            Group group = new Group(plans(random), random, "seed " + seed);
            group.run();
            forwards += group.forwards;
        }
        assertTrue(forwards > 1000, forwards + " forwards");
    }

    /** All ranks of a ring, their buffers as bytes. */
    private static final class Group {
        private final List<RankPlan> plans;
        private final List<CopyList> lists;
        private final List<List<Step>> steps;
        private final DeviceLayout layout;
        private final Random random;
        private final String what;
        private final byte[][][] buffers;
        private final boolean[][] arrived;
        private final int[][] nextCopy;
        private final int[] nextStep;
        private final int[][] left;
        private final int[] released;
        private int forwards;

        Group(List<RankPlan> plans, Random random, String what) {
            this.plans = plans;
            this.random = random;
            this.what = what;
            this.lists = plans.stream().map(CopyList::of).toList();
            this.steps = lists.stream().map(RingSteps::steps).toList();
            Shards shards = plans.getFirst().chunks().shards();
            this.layout = new DeviceLayout(shards, DType.FP16, COLS, ArrivalPlace.PING_PONG);
            int ranks = plans.size();
            this.buffers = new byte[ranks][2][];
            this.arrived = new boolean[ranks][lists.getFirst().flags()];
            this.nextCopy = new int[ranks][];
            this.nextStep = new int[ranks];
            this.left = new int[ranks][ranks];
            this.released = new int[ranks];
            for (int rank = 0; rank < ranks; rank++) {
                nextCopy[rank] = new int[lists.get(rank).lanes().size()];
                for (int parity = 0; parity < 2; parity++) {
                    buffers[rank][parity] = new byte[(int) layout.bytes(rank)];
                }
                for (long row = 0; row < shards.rows(rank); row++) {
                    for (long b = 0; b < 2 * COLS; b++) {
                        int at = (int) (layout.at(rank, rank, row, 0) + b);
                        buffers[rank][0][at] = value(rank, row, b);
                    }
                }
                int[] numbers = plans.get(rank).releaseNumbers();
                for (Step step : steps.get(rank)) {
                    left[rank][numbers[step.source()]]++;
                }
                for (List<Copy> lane : lists.get(rank).lanes()) {
                    lane.forEach(copy -> left[copy.from()][numbers[copy.source()]]++);
                }
            }
            for (int rank = 0; rank < ranks; rank++) {
                advance(rank);
            }
        }

        private static byte value(int source, long row, long at) {
            return (byte) (31 * source + 7 * row + at + 1);
        }

        void run() {
            while (true) {
                List<Runnable> possible = new ArrayList<>();
                boolean more = false;
                for (int r = 0; r < plans.size(); r++) {
                    int rank = r;
                    for (int l = 0; l < nextCopy[rank].length; l++) {
                        int lane = l;
                        List<Copy> copies = lists.get(rank).lanes().get(lane);
                        if (nextCopy[rank][lane] < copies.size()) {
                            more = true;
                            Copy copy = copies.get(nextCopy[rank][lane]);
                            boolean isThere =
                                    copy.awaitedFlag() < 0 || arrived[rank][copy.awaitedFlag()];
                            if (isThere && released[copy.to()] >= copy.credit()) {
                                possible.add(() -> copy(rank, lane, copy));
                            }
                        }
                    }
                    if (nextStep[rank] < steps.get(rank).size()) {
                        more = true;
                        Step step = steps.get(rank).get(nextStep[rank]);
                        if (step.flags().stream().allMatch(flag -> arrived[rank][flag])) {
                            possible.add(() -> multiply(rank, step));
                        }
                    }
                }
                if (!more) {
                    return;
                }
                assertTrue(!possible.isEmpty(), "nothing can go on, " + what);
                possible.get(random.nextInt(possible.size())).run();
            }
        }

        private void copy(int rank, int lane, Copy copy) {
            nextCopy[rank][lane]++;
            for (long row = copy.firstRow(); row < copy.firstRow() + copy.rows(); row++) {
                byte[] from = buffer(copy.from(), copy.source(), copy.fromSlot());
                byte[] to = buffer(copy.to(), copy.source(), copy.toSlot());
                System.arraycopy(
                        from,
                        (int) layout.at(copy.from(), copy.source(), row, copy.firstCol()),
                        to,
                        (int) layout.at(copy.to(), copy.source(), row, copy.firstCol()),
                        (int) (2 * copy.cols()));
            }
            arrived[copy.to()][copy.flag()] = true;
            forwards += copy.source() == rank ? 0 : 1;
            used(rank, copy.source());
        }

        private byte[] buffer(int rank, int source, int slot) {
            return buffers[rank][layout.buffer(rank, source, slot, 0)];
        }

        private void multiply(int rank, Step step) {
            nextStep[rank]++;
            int source = step.source();
            byte[] from = buffer(rank, source, CopyList.slots(plans.get(rank))[source]);
            for (RowRange range : step.ranges()) {
                for (long row = range.sourceRow(); row < range.sourceRow() + range.rows(); row++) {
                    for (long b = 0; b < 2 * COLS; b++) {
                        int at = (int) (layout.at(rank, source, row, 0) + b);
                        assertEquals(value(source, row, b), from[at], what);
                    }
                }
            }
            used(rank, source);
        }

        private void used(int rank, int source) {
            int number = plans.get(rank).releaseNumbers()[source];
            if (number > 0) {
                left[rank][number]--;
                advance(rank);
            }
        }

        private void advance(int rank) {
            while (released[rank] + 1 < plans.size() && left[rank][released[rank] + 1] <= 0) {
                released[rank]++;
            }
        }
    }
}
