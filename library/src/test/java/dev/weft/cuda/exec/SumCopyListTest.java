package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.exec.SumCopyList.Move;
import dev.weft.cuda.exec.SumCopyList.Parts;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileSchedule.SumBlock;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Plans of sums as copies: what comes, what is multiplied, what goes, and what waits for what. */
class SumCopyListTest {

    private static final TileShape SHAPE = new TileShape(256, 256, 128, 66);

    private static SumCopyList list(
            Reduction reduction,
            Shards rows,
            Shards inner,
            boolean all,
            int rank,
            long... columns) {
        return list(false, reduction, rows, inner, all, rank, columns);
    }

    private static SumCopyList list(
            boolean staged,
            Reduction reduction,
            Shards rows,
            Shards inner,
            boolean all,
            int rank,
            long... columns) {
        long n = Arrays.stream(columns).sum();
        Chunks chunks = Chunks.byRows(rows, n, 256, 256);
        RankPlan plan = reduction.plans(chunks, inner, all).get(rank);
        List<Long> each = Arrays.stream(columns).boxed().toList();
        return SumCopyList.of(plan, each, all, SHAPE, staged, false);
    }

    /** Elements that moves to a slot cover, each once. */
    private static long covered(List<Move> moves, int slot) {
        Map<String, Long> seen = new HashMap<>();
        long elements = 0;
        for (Move move : moves.stream().filter(m -> m.slot() == slot).toList()) {
            String key = move.product() + " " + move.row() + " " + move.col();
            assertTrue(seen.put(key, move.rows()) == null, key);
            elements += move.rows() * move.cols();
        }
        return elements;
    }

    @Test
    void theLastOfAChainContinuesAllAndSendsWhatIsNotItsOwn() {
        Shards rows = Shards.even(4096, 4);
        SumCopyList list = list(Reduction.CHAIN, rows, Shards.even(4096, 4), false, 3, 8192);
        assertEquals(4096L * 8192, covered(list.in(), Reduction.PARTIAL));
        assertEquals(3072L * 8192, covered(list.out(), Reduction.WHOLE));
        assertEquals(list.counters(), list.out().size());
        assertEquals(List.of(), list.late());
        Parts own = new Parts(3072, 1024, List.of(Reduction.PARTIAL), List.of(-1));
        assertEquals(List.of(own), list.results());
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
        assertEquals(4096L * 1536, covered(list.out(), Reduction.PARTIAL));
        assertEquals(1024L * 1536, covered(list.in(), Reduction.WHOLE));
        assertEquals(4, list.results().size());
        assertEquals(List.of(Reduction.WHOLE), list.results().getFirst().slots());
        assertEquals(1024, list.rowsOf(Reduction.WHOLE)[1]);
        assertEquals(4096, list.rowsOf(Reduction.PARTIAL)[1]);
    }

    @Test
    void partsAreAddedInRankOrderAndSumsOfAllGoToEverybody() {
        Shards rows = Shards.of(300, 200, 500);
        SumCopyList list = list(Reduction.MESH_PUSH, rows, Shards.of(5, 0, 9), true, 2, 100);
        int slot = Reduction.slotOf(2);
        assertEquals(500L * 100, covered(list.out(), slot));
        assertEquals(500L * 100, covered(list.in(), Reduction.slotOf(0)));
        assertEquals(500L * 100, covered(list.in(), Reduction.WHOLE));
        assertEquals(2 * 2, list.late().size());
        List<Integer> added = List.of(Reduction.slotOf(0), Reduction.PARTIAL);
        assertEquals(added, list.results().getLast().slots());
        assertEquals(List.of(Reduction.WHOLE), list.results().getFirst().slots());
    }

    /** Threads of the host send a chunk to everybody, and hand on what has come to them. */
    @Test
    void whatGoesThroughHostMemoryIsCopiedOutOnce() {
        Shards rows = Shards.of(300, 200, 500);
        Shards inner = Shards.of(16, 16, 16);
        for (int rank = 0; rank < 3; rank++) {
            SumCopyList chain = list(true, Reduction.CHAIN, rows, inner, true, rank, 100, 60);
            assertEquals(1000L * 160, covered(chain.out(), Reduction.PARTIAL));
            assertEquals(List.of(), chain.late());
            SumCopyList mesh = list(true, Reduction.MESH_PUSH, rows, inner, true, rank, 100, 60);
            long own = rows.rows(rank);
            assertEquals((1000 - own) * 160, covered(mesh.out(), Reduction.PARTIAL));
            assertEquals(own * 160, covered(mesh.late(), Reduction.PARTIAL));
            assertTrue(mesh.out().stream().allMatch(m -> m.slot() == Reduction.PARTIAL));
            assertTrue(mesh.late().stream().allMatch(m -> m.fromSlot() == Reduction.WHOLE));
            // A rank adds and sends its own rows before it waits for those of others.
            List<Integer> slots = mesh.in().stream().map(Move::slot).toList();
            int whole = mesh.inBeforeWhole();
            assertEquals(whole, slots.indexOf(Reduction.WHOLE));
            assertEquals(2 * own * 160, elements(mesh.in().subList(0, whole)));
        }
    }

    /** A product that is rounded is no whole sum yet, even if no other rank adds to it. */
    @Test
    void whatIsRoundedIsAddedUpBeforeItIsSentWhole() {
        Chunks chunks = Chunks.byRows(Shards.of(300, 200), 100, 256, 256);
        RankPlan plan = Reduction.MESH_PUSH.plans(chunks, Shards.of(16, 0), true).getFirst();
        SumCopyList exact = SumCopyList.of(plan, List.of(100L), true, SHAPE, true, false);
        assertEquals(List.of(), exact.late());
        SumCopyList rounded = SumCopyList.of(plan, List.of(100L), true, SHAPE, true, true);
        assertEquals(300 * 100, covered(rounded.late(), Reduction.PARTIAL));
        assertEquals(200 * 100, covered(rounded.out(), Reduction.PARTIAL));
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
                if (move.fromSlot() == Reduction.PARTIAL) {
                    SumBlock made =
                            blocks.stream()
                                    .filter(b -> b.signal() == move.word())
                                    .findFirst()
                                    .orElseThrow();
                    assertEquals(made.row(), move.row());
                    assertTrue(made.flag() < move.after(), list::toString);
                } else {
                    assertTrue(move.word() < move.after(), list::toString);
                }
            }
            long rows = list.results().stream().mapToLong(Parts::rows).sum();
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
