package dev.weft.cuda.exec.sum;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.DeviceSteps;
import dev.weft.cuda.exec.sum.SumCopyList.Made;
import dev.weft.cuda.exec.sum.SumCopyList.Move;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileSchedule.SumBlock;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.plan.Chunks;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Plans of sums as copies: what comes, what is multiplied, what goes, and what waits for what. */
class SumCopyListTest {

    /** The buffers of these plans: sums so far, and whole sums. */
    private static final int SUMS = StepPlan.C + 1;

    private static final int WHOLE = StepPlan.C + 2;
    private static final TileShape SHAPE = new TileShape(256, 256, 128, 66);

    private static SumCopyList list(
            Reduction reduction,
            Shards rows,
            Shards kParts,
            boolean all,
            int rank,
            long... columns) {
        return list(false, reduction, rows, kParts, all, rank, columns);
    }

    private static SumCopyList list(
            boolean staged,
            Reduction reduction,
            Shards rows,
            Shards kParts,
            boolean all,
            int rank,
            long... columns) {
        return list(staged, reduction, reduction.order(), rows, kParts, all, rank, columns);
    }

    private static SumCopyList list(
            boolean staged,
            Reduction reduction,
            Reduction.Order order,
            Shards rows,
            Shards kParts,
            boolean all,
            int rank,
            long... columns) {
        Chunks chunks = Chunks.byRows(rows, Arrays.stream(columns).sum(), 256, 256);
        List<StepPlan> plans = reduction.plans(new ReductionRequest(chunks, kParts, all, order));
        List<Long> each = Arrays.stream(columns).boxed().toList();
        return SumCopyList.of(plans, rank, chunks, each, SHAPE, staged);
    }

    /** Elements that moves to one buffer of their receivers cover, each once for each of them. */
    private static long covered(List<Move> moves, int buffer) {
        Set<String> seen = new HashSet<>();
        long elements = 0;
        for (Move move : moves) {
            if (move.copy().to().buffer() == buffer) {
                String key =
                        "%d %d %d to %d"
                                .formatted(
                                        move.product(),
                                        move.row(),
                                        move.col(),
                                        move.copy().to().rank());
                assertTrue(seen.add(key), key);
                elements += move.rows() * move.cols();
            }
        }
        return elements;
    }

    @Test
    void theLastOfAChainContinuesAllAndSendsWhatIsNotItsOwn() {
        Shards rows = Shards.even(4096, 4);
        SumCopyList list = list(Reduction.CHAIN, rows, Shards.even(4096, 4), false, 3, 8192);
        assertEquals(4096L * 8192, covered(list.in(), SUMS));
        assertEquals(3072L * 8192, covered(list.out(), WHOLE));
        assertEquals(list.counters(), list.out().size());
        assertEquals(List.of(), list.late());
        Part sums = new Part(3, SUMS, 3072, 1024, 0, 8192);
        Part c = new Part(3, StepPlan.C, 0, 1024, 0, 8192);
        assertEquals(
                List.of(new Made(new DeviceSteps.RowSum(List.of(sums), 3072, c), List.of(-1))),
                list.results());
        List<SumBlock> blocks = list.blocks().getFirst();
        assertTrue(blocks.stream().allMatch(b -> b.flag() >= 0));
        // Small at both ends, whole rows between.
        assertEquals(2048, blocks.getFirst().cols());
        assertEquals(8192, blocks.get(8).cols());
        assertEquals(2048, blocks.getLast().cols());
        assertTrue(blocks.getLast().narrow());
    }

    @Test
    void theFirstOfAChainStartsFromZeroAndGetsItsRowsWhole() {
        Shards rows = Shards.even(4096, 4);
        SumCopyList list = list(Reduction.CHAIN, rows, Shards.even(64, 4), false, 0, 1024, 512);
        assertTrue(list.blocks().stream().flatMap(List::stream).allMatch(b -> b.flag() < 0));
        assertEquals(4096L * 1536, covered(list.out(), SUMS));
        assertEquals(1024L * 1536, covered(list.in(), WHOLE));
        assertEquals(4, list.results().size());
        assertEquals(WHOLE, list.results().getFirst().rows().parts().getFirst().buffer());
        assertEquals(1024, list.buffers().get(WHOLE).rows());
        assertEquals(4096, list.buffers().get(SUMS).rows());
    }

    @Test
    void partsAreAddedInRankOrderAndSumsOfAllGoToEverybody() {
        Shards rows = Shards.of(300, 200, 500);
        SumCopyList list = list(Reduction.MESH_PUSH, rows, Shards.of(5, 0, 9), true, 2, 100);
        assertEquals(500L * 100, elements(list.out()));
        assertEquals(500L * 100, elements(list.in().subList(0, list.beforeWhole())));
        assertEquals(500L * 100, covered(list.in(), WHOLE));
        assertEquals(2 * 2, list.late().size());
        assertEquals(2, list.added().size());
        for (Made made : list.added()) {
            assertEquals(0, from(list, made.rows().parts().getFirst()));
            assertEquals(SUMS, made.rows().parts().getLast().buffer());
            assertEquals(2, made.rows().parts().size());
            assertEquals(WHOLE, made.rows().into().buffer());
        }
        for (Made made : list.results()) {
            assertEquals(WHOLE, made.rows().parts().getFirst().buffer());
            assertEquals(1, made.rows().parts().size());
        }
    }

    /** The rank that sends what comes to a part. */
    private static int from(SumCopyList list, Part part) {
        return list.in().stream()
                .filter(move -> move.part().equals(part))
                .mapToInt(move -> move.copy().from().rank())
                .findFirst()
                .orElseThrow();
    }

    /** Threads of the host send a chunk to everybody, and hand on what has come to them. */
    @Test
    void whatGoesThroughHostMemoryIsCopiedOutOnce() {
        Shards rows = Shards.of(300, 200, 500);
        Shards kParts = Shards.of(16, 16, 16);
        for (int rank = 0; rank < 3; rank++) {
            SumCopyList chain = list(true, Reduction.CHAIN, rows, kParts, true, rank, 100, 60);
            assertEquals(1000L * 160, elements(chain.out()));
            assertTrue(chain.out().stream().allMatch(chain::isMultiplied));
            assertEquals(List.of(), chain.late());
            SumCopyList mesh = list(true, Reduction.MESH_PUSH, rows, kParts, true, rank, 100, 60);
            long own = rows.rows(rank);
            assertEquals((1000 - own) * 160, elements(mesh.out()));
            assertEquals(own * 160, elements(mesh.late()));
            assertTrue(mesh.out().stream().allMatch(mesh::isMultiplied));
            assertTrue(mesh.late().stream().allMatch(m -> m.part().buffer() == WHOLE));
            // A rank adds and sends its own rows before it waits for those of others.
            List<Move> added = mesh.in().subList(0, mesh.beforeWhole());
            assertEquals(0, covered(added, WHOLE));
            assertEquals(2 * own * 160, elements(added));
            mesh.leaving().forEach(move -> assertTrue(move.maker().signal() != null));
        }
    }

    /** Sums of one rank alone are sent whole, in fp32, however they were stored. */
    @Test
    void whatIsRoundedIsAddedUpBeforeItIsSentWhole() {
        for (Reduction.Order order :
                List.of(Reduction.Order.BY_RANK, Reduction.Order.BY_RANK_BF16)) {
            SumCopyList list =
                    list(
                            true,
                            Reduction.MESH_PUSH,
                            order,
                            Shards.of(300, 200),
                            Shards.of(16, 0),
                            true,
                            0,
                            100);
            assertEquals(300 * 100, elements(list.late()));
            assertEquals(200 * 100, elements(list.out()));
            boolean rounded = order == Reduction.Order.BY_RANK_BF16;
            assertEquals(rounded ? DType.BF16 : DType.FP32, list.type(SUMS));
            assertEquals(DType.FP32, list.type(WHOLE));
        }
    }

    private static long elements(List<Move> moves) {
        return moves.stream().mapToLong(move -> move.rows() * move.cols()).sum();
    }

    /** Whatever the cut: nothing that waits is queued before what it waits for. */
    @Test
    void copiesWaitOnlyForWhatIsQueuedBefore() {
        Random random = new Random(11);
        for (int i = 0; i < 200; i++) {
            int ranks = 1 + random.nextInt(5);
            long[] m = new long[ranks];
            long[] k = new long[ranks];
            for (int r = 0; r < ranks; r++) {
                m[r] = random.nextInt(900);
                k[r] = 16L * random.nextInt(4);
            }
            k[random.nextInt(ranks)] = 16;
            Reduction reduction =
                    List.of(Reduction.CHAIN, Reduction.MESH_PUSH, Reduction.SEQUENTIAL)
                            .get(random.nextInt(3));
            boolean all = random.nextBoolean();
            int rank = random.nextInt(ranks);
            SumCopyList list =
                    list(
                            reduction,
                            Shards.of(m),
                            Shards.of(k),
                            all,
                            rank,
                            1 + random.nextInt(3000));
            List<SumBlock> blocks = list.blocks().getFirst();
            for (Move move : list.out()) {
                if (list.isMultiplied(move)) {
                    SumBlock made =
                            blocks.stream()
                                    .filter(b -> b.signal() == move.word())
                                    .findFirst()
                                    .orElseThrow();
                    assertEquals(made.row(), move.part().firstRow());
                    assertTrue(made.flag() < move.after(), list::toString);
                } else {
                    assertTrue(move.word() < move.after(), list::toString);
                }
            }
            long rows = list.results().stream().mapToLong(made -> made.rows().into().rows()).sum();
            assertEquals(all ? Shards.of(m).totalRows() : m[rank], rows);
            checkTiles(blocks);
        }
    }

    private static void checkTiles(List<SumBlock> blocks) {
        TileSchedule schedule = TileSchedule.ofSums(blocks, SHAPE);
        int[] tiles = schedule.tiles();
        List<Integer> widths = new ArrayList<>();
        long area = 0;
        for (int t = 0; t < schedule.tileCount(); t++) {
            int at = t * TileSchedule.TILE_INTS;
            widths.add(tiles[at + 3]);
            area += tiles[at + 1];
        }
        assertEquals(widths, widths.stream().sorted((x, y) -> y - x).toList());
        assertEquals(schedule.tileCount(), schedule.signals().length);
        long expected =
                blocks.stream()
                        .mapToLong(b -> b.rows() * Math.ceilDiv(b.cols(), b.narrow() ? 128 : 256))
                        .sum();
        assertEquals(expected, area);
    }
}
