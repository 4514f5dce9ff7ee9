package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.exec.CopyList.Launch;
import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherView;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Copies and products of shards that share two buffers, in every order that events allow. */
class LaunchesTest {

    private static final long COLS = 4;

    /** The plans of a random ring; shards may be empty. */
    private static Plan plans(Random random) {
        long[] rows = new long[1 + random.nextInt(8)];
        for (int r = 0; r < rows.length; r++) {
            rows[r] = random.nextInt(5) == 0 ? 0 : 1 + random.nextInt(12);
        }
        long chunkRows = 1 + random.nextInt(6);
        Chunks chunks =
                Chunks.byRows(
                        Shards.of(rows), COLS, chunkRows, chunkRows * (1 + random.nextInt(2)));
        GatherWriter ring =
                random.nextBoolean()
                        ? Algorithm.pingPongRing()
                        : Algorithm.slicedRing(
                                1 + random.nextInt(2), 1 + random.nextInt(2), random.nextBoolean());
        return plan(ring, chunks, 1 + random.nextInt(3));
    }

    private static Plan plan(GatherWriter writer, Chunks chunks, int lanes) {
        Hosts hosts = Hosts.one(chunks.shards().ranks());
        List<StepPlan> steps = writer.plans(new GatherRequest(chunks, lanes, hosts, 1));
        return new Plan(writer, writer.cut(chunks), lanes, List.copyOf(steps));
    }

    /** Two programs and one lane: a shard comes in two copies, one after the other. */
    private static Plan tutorial(int ranks, long shardRows) {
        Chunks chunks =
                Chunks.byRows(
                        Shards.even(ranks * shardRows, ranks), COLS, shardRows / 2, shardRows / 2);
        return plan(Algorithm.slicedRing(2, 1, false), chunks, 1);
    }

    private static List<CopyList> lists(Plan plan) {
        return plan.steps().stream()
                .map(own -> CopyList.of(plan.steps(), own.rank(), plan.chunks(), null))
                .toList();
    }

    @Test
    void everyShardIsOneLaunchThatWaitsForAllOfIt() {
        for (long seed = 0; seed < 200; seed++) {
            Plan plans = plans(new Random(seed));
            for (CopyList list : lists(plans)) {
                assertEquals(plans.steps().get(list.rank()).movers(), list.lanes().size());
                Chunks chunks = plans.chunks();
                Shards shards = chunks.shards();
                Set<Integer> sources = new HashSet<>();
                for (Launch launch : list.launches()) {
                    int source = launch.source();
                    assertTrue(sources.add(source), "seed " + seed);
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
                            launch.ranges());
                    Set<Integer> flags = new HashSet<>();
                    for (int c = 0; source != list.rank() && c < chunks.count(source); c++) {
                        flags.add(chunks.tag(source, c));
                    }
                    Set<Integer> awaited = new HashSet<>();
                    for (Raised raised : launch.waits()) {
                        assertEquals(list.rank(), raised.at());
                        awaited.add(raised.word());
                    }
                    assertEquals(flags, awaited);
                }
                for (int source = 0; source < shards.ranks(); source++) {
                    assertEquals(shards.rows(source) > 0, sources.contains(source));
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

    @Test
    void shardsOfManyRanksAndTwoProgramsAreMultipliedInOrder() {
        for (int ranks : new int[] {4, 5, 16}) {
            Plan plans = tutorial(ranks, 8);
            for (CopyList list : lists(plans)) {
                assertEquals(
                        new GatherView(plans.steps().get(list.rank()), plans.chunks())
                                .consumption().stream()
                                        .map(GatherView.Block::source)
                                        .distinct()
                                        .toList(),
                        list.launches().stream().map(Launch::source).toList());
            }
            for (long seed = 0; seed < 10; seed++) {
                new Group(plans, new Random(seed), ranks + " ranks, seed " + seed).run();
            }
        }
    }

    /** Where every shard has its own place, too: none waits for the end of another program. */
    @Test
    void productsOfAllProgramsAreTakenInTurn() {
        Chunks chunks = Chunks.byRows(Shards.even(32, 4), COLS, 2, 2);
        Plan plans = plan(Algorithm.byPrograms(Algorithm.RING, 2), chunks, 1);
        for (CopyList list : lists(plans)) {
            assertEquals(
                    Algorithm.RING
                            .plans(new GatherRequest(chunks, 1, Hosts.one(4), 1))
                            .get(list.rank())
                            .multiplications()
                            .map(product -> Math.toIntExact(product.firstRow() / 8))
                            .toList(),
                    list.ranges().stream().map(RowRange::source).toList());
        }
    }

    /** All ranks of a ring, their buffers as bytes. */
    private static final class Group {
        private final List<CopyList> lists;
        private final DeviceLayout layout;
        private final Random random;
        private final String what;
        private final byte[][][] buffers;
        private final boolean[][] raised;
        private final int[][] nextCopy;
        private final boolean inOrder;
        private int forwards;

        Group(Plan plans, Random random, String what) {
            this.random = random;
            this.what = what;
            this.lists = lists(plans);
            Shards shards = plans.chunks().shards();
            this.layout = new DeviceLayout(shards, DType.FP16, COLS, DeviceLayout.Place.PING_PONG);
            int ranks = plans.steps().size();
            this.buffers = new byte[ranks][2][];
            this.raised = new boolean[ranks][lists.getFirst().flags() + ranks];
            this.nextCopy = new int[ranks][];
            this.inOrder = random.nextBoolean();
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
            }
        }

        private static byte value(int source, long row, long at) {
            return (byte) (31 * source + 7 * row + at + 1);
        }

        private boolean areDone(List<Raised> waits) {
            return waits.stream().allMatch(one -> raised[one.at()][one.word()]);
        }

        void run() {
            while (true) {
                List<Runnable> possible = new ArrayList<>();
                boolean more = false;
                for (int r = 0; r < lists.size(); r++) {
                    int rank = r;
                    for (int l = 0; l < nextCopy[rank].length; l++) {
                        int lane = l;
                        List<Copy> copies = lists.get(rank).lanes().get(lane);
                        if (nextCopy[rank][lane] < copies.size()) {
                            more = true;
                            Copy copy = copies.get(nextCopy[rank][lane]);
                            if (areDone(copy.waits())) {
                                possible.add(() -> copy(rank, lane, copy));
                            }
                        }
                    }
                    List<Launch> launches = lists.get(rank).launches();
                    for (int l = 0; l < launches.size(); l++) {
                        int index = l;
                        if (!launched(rank, index)) {
                            more = true;
                            if (areDone(launches.get(index).waits())) {
                                possible.add(() -> multiply(rank, index));
                            }
                            if (inOrder) {
                                break;
                            }
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
            raised[copy.to()][copy.flag()] = true;
            forwards += copy.source() == rank ? 0 : 1;
        }

        private byte[] buffer(int rank, int source, int slot) {
            return buffers[rank][layout.buffer(rank, source, slot, 0)];
        }

        private boolean launched(int rank, int index) {
            return raised[rank][lists.get(rank).flags() + index];
        }

        private void multiply(int rank, int index) {
            CopyList list = lists.get(rank);
            Launch launch = list.launches().get(index);
            int source = launch.source();
            byte[] from = buffer(rank, source, list.slots(lists.size())[source]);
            assertTrue(source == rank || launch.slot() == list.slots(lists.size())[source], what);
            for (RowRange range : launch.ranges()) {
                for (long row = range.sourceRow(); row < range.sourceRow() + range.rows(); row++) {
                    for (long b = 0; b < 2 * COLS; b++) {
                        int at = (int) (layout.at(rank, source, row, 0) + b);
                        assertEquals(value(source, row, b), from[at], what);
                    }
                }
            }
            raised[rank][list.flags() + index] = true;
        }
    }
}
