package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherRequest.Option;
import dev.weft.plan.GatherView;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.cut.ArrivalCut.Block;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.ArrivalCuts;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/** What the copies of a whole group bring, and what rows wait for. */
class CopyListTest {

    private static CopyList list(Algorithm algorithm, Chunks chunks, int rank) {
        return CopyList.of(plans(algorithm, chunks, 1, Set.of()), rank, chunks, null);
    }

    private static List<StepPlan> plans(
            Algorithm algorithm, Chunks chunks, int lanes, Set<Option> options) {
        Hosts hosts = Hosts.one(chunks.shards().ranks());
        return algorithm.plans(new GatherRequest(chunks, lanes, hosts, 1).with(options));
    }

    /**
     * The lists of all ranks of a group.
     *
     * @param arrivals by rank, the copies that end there, whoever issues them
     */
    private record Case(
            String what,
            Chunks chunks,
            boolean gated,
            List<CopyList> lists,
            List<List<Copy>> arrivals) {

        static Case of(
                String what,
                Algorithm algorithm,
                Chunks chunks,
                int lanes,
                Function<GatherView, ArrivalCut> cut,
                boolean gated) {
            int ranks = chunks.shards().ranks();
            Set<Option> options = gated ? Set.of() : Set.of(Option.GATHER_FIRST);
            List<StepPlan> plans = plans(algorithm, chunks, lanes, options);
            List<CopyList> lists =
                    GatherView.of(plans, chunks).stream()
                            .map(one -> CopyList.of(plans, one.rank(), chunks, cut.apply(one)))
                            .toList();
            List<List<Copy>> arrivals = new ArrayList<>();
            for (int r = 0; r < ranks; r++) {
                int rank = r;
                arrivals.add(
                        lists.stream()
                                .flatMap(list -> list.lanes().stream())
                                .flatMap(List::stream)
                                .filter(copy -> copy.to() == rank)
                                .toList());
            }
            return new Case(what, chunks, gated, lists, arrivals);
        }

        static Case random(Algorithm algorithm, long seed) {
            Random random = new Random(seed);
            Shards shards = randomShards(random);
            long cols = 1 + random.nextInt(400);
            long blockRows = 1 + random.nextInt(30);
            Chunks chunks =
                    random.nextBoolean()
                            ? Chunks.byRows(shards, cols, 1 + random.nextInt(20), blockRows)
                            : Chunks.bySplits(shards, cols, 1 + random.nextInt(5), blockRows);
            if (random.nextInt(4) == 0) {
                chunks = chunks.withChunkCols(64L * (1 + random.nextInt(4)));
            }
            return of(
                    algorithm.label() + ", " + chunks + ", seed " + seed,
                    algorithm,
                    chunks,
                    1 + random.nextInt(4),
                    plan -> null,
                    algorithm != Algorithm.SEQUENTIAL);
        }

        /** Pulled on one lane, a chunk to a block, and cut by hand or by {@link ArrivalCuts#of}. */
        static Case randomlyCut(long seed) {
            Random random = new Random(seed);
            Shards shards = randomShards(random);
            boolean priced = random.nextBoolean();
            // A slice has 512 columns at least.
            long cols = 1 + random.nextInt(priced ? 2500 : 400);
            long chunkRows = 1 + random.nextInt(40);
            Chunks chunks = Chunks.byRows(shards, cols, chunkRows, chunkRows);
            TileShape shape = new TileShape(1 + random.nextInt(8), 256, 128, 1 + random.nextInt(9));
            return of(
                    (priced ? "priced" : "cut by hand") + ", " + chunks + ", seed " + seed,
                    Algorithm.MESH_PULL,
                    chunks,
                    1,
                    plan -> priced ? priced(plan, shape) : byHand(plan, random),
                    true);
        }

        private static Shards randomShards(Random random) {
            long[] rows = new long[1 + random.nextInt(6)];
            for (int r = 0; r < rows.length; r++) {
                rows[r] = random.nextInt(4) == 0 ? 0 : random.nextInt(40);
            }
            return Shards.of(rows);
        }

        private static final Machine H200 = Machines.named("h200-pcie");

        private static ArrivalCut priced(GatherView plan, TileShape shape) {
            return ArrivalCuts.of(
                    H200,
                    shape.grid(),
                    DType.FP16,
                    plan.chunks().cols(),
                    512,
                    plan.chunks().shards().rows(plan.rank()),
                    arriving(plan));
        }

        private static ArrivalCut byHand(GatherView plan, Random random) {
            List<List<Block>> cut = new ArrayList<>();
            List<Long> arriving = arriving(plan);
            for (int c = 0; c < arriving.size(); c++) {
                List<Block> blocks = new ArrayList<>();
                boolean narrow = false;
                for (long left = arriving.get(c); left > 0; ) {
                    long rows = 1 + random.nextInt((int) left);
                    narrow |= c == arriving.size() - 1 && random.nextInt(3) == 0;
                    blocks.add(new Block(rows, slices(plan.chunks().cols(), random), narrow));
                    left -= rows;
                }
                cut.add(blocks);
            }
            return new ArrivalCut(cut);
        }

        private static List<Long> slices(long k, Random random) {
            List<Long> cols = new ArrayList<>();
            long left = k;
            while (left > 64 && random.nextInt(4) > 0) {
                cols.add(64L);
                left -= 64;
            }
            cols.add(left);
            return cols;
        }

        private static List<Long> arriving(GatherView plan) {
            return plan.lanes().stream()
                    .flatMap(lane -> lane.moves().stream())
                    .map(t -> plan.chunks().chunk(t.source(), t.chunk()).rows())
                    .toList();
        }

        Shards shards() {
            return chunks.shards();
        }
    }

    private static List<Long> seeds() {
        return LongStream.rangeClosed(1, 400).boxed().toList();
    }

    @ParameterizedTest
    @EnumSource(value = Algorithm.class, mode = Mode.EXCLUDE, names = "AUTO")
    void everyRemoteElementArrivesOnceAndItsRowWaitsForIt(Algorithm algorithm) {
        for (long seed : seeds()) {
            Case c = Case.random(algorithm, seed);
            for (int rank = 0; rank < c.shards().ranks(); rank++) {
                if (algorithm == Algorithm.DIRECT) {
                    assertEquals(List.of(), c.arrivals().get(rank), c.what());
                } else {
                    assertArrival(c, rank);
                }
                assertFlags(c, rank);
                assertRows(c, rank);
            }
            assertForwards(c);
        }
    }

    @Test
    void soItDoesHoweverChunksAreCut() {
        int sliced = 0;
        for (long seed : seeds()) {
            Case c = Case.randomlyCut(seed);
            for (int rank = 0; rank < c.shards().ranks(); rank++) {
                assertArrival(c, rank);
                assertFlags(c, rank);
                assertRows(c, rank);
                for (Copy copy : c.arrivals().get(rank)) {
                    sliced += copy.cols() < c.chunks().cols() ? 1 : 0;
                }
            }
            assertForwards(c);
        }
        assertTrue(sliced > 1000, sliced + " slices");
    }

    private static void assertArrival(Case c, int rank) {
        int cols = (int) c.chunks().cols();
        int[] times = new int[(int) c.shards().totalRows() * cols];
        for (Copy copy : c.arrivals().get(rank)) {
            long first = c.shards().firstRow(copy.source()) + copy.firstRow();
            assertTrue(copy.firstRow() + copy.rows() <= c.shards().rows(copy.source()), c.what());
            for (long row = first; row < first + copy.rows(); row++) {
                for (long col = copy.firstCol(); col < copy.firstCol() + copy.cols(); col++) {
                    times[(int) (row * cols + col)]++;
                }
            }
        }
        for (int source = 0; source < c.shards().ranks(); source++) {
            long first = c.shards().firstRow(source) * cols;
            int expected = source == rank ? 0 : 1;
            for (long i = first; i < first + c.shards().rows(source) * cols; i++) {
                // Hundreds of millions: an assertion for each would take seconds.
                if (times[(int) i] != expected) {
                    fail("element " + i + " came " + times[(int) i] + " times, " + c.what());
                }
            }
        }
    }

    private static void assertFlags(Case c, int rank) {
        Set<Integer> flags = new HashSet<>();
        for (Copy copy : c.arrivals().get(rank)) {
            assertTrue(flags.add(copy.flag()), () -> "flag " + copy.flag() + " twice, " + c.what());
            assertTrue(copy.flag() >= 0 && copy.flag() < c.lists().get(rank).flags(), c.what());
        }
    }

    /** Stretches cover the rows of C once, and each row waits for just what brings it. */
    private static void assertRows(Case c, int rank) {
        Map<Long, RowRange> byRow = new HashMap<>();
        for (RowRange range : c.lists().get(rank).ranges()) {
            long distance = range.row() - range.sourceRow();
            assertEquals(c.shards().firstRow(range.source()), distance, c.what());
            for (long row = range.row(); row < range.row() + range.rows(); row++) {
                assertNull(byRow.put(row, range), c.what());
                assertPieces(c, rank, range, row - distance);
            }
        }
        assertEquals(c.shards().totalRows(), byRow.size(), c.what());
    }

    private static void assertPieces(Case c, int rank, RowRange range, long row) {
        Set<Piece> expected = new HashSet<>();
        for (Copy copy : c.gated() ? c.arrivals().get(rank) : List.<Copy>of()) {
            if (copy.source() == range.source()
                    && row >= copy.firstRow()
                    && row < copy.firstRow() + copy.rows()) {
                expected.add(new Piece(copy.firstRow(), copy.rows(), copy.firstCol(), copy.flag()));
            }
        }
        Set<Piece> actual = new HashSet<>();
        for (Piece piece : range.pieces()) {
            if (piece.touches(row, 1)) {
                actual.add(piece);
            }
        }
        assertEquals(
                expected,
                actual,
                () ->
                        "row "
                                + row
                                + " of rank "
                                + range.source()
                                + " at "
                                + rank
                                + ", "
                                + c.what());
    }

    /** What a rank passes on must have come to it, under the flag that it awaits. */
    private static void assertForwards(Case c) {
        for (int rank = 0; rank < c.lists().size(); rank++) {
            for (List<Copy> lane : c.lists().get(rank).lanes()) {
                for (Copy copy : lane) {
                    if (copy.from() == copy.source()) {
                        assertEquals(List.of(), copy.waits(), c.what());
                        continue;
                    }
                    assertEquals(rank, copy.from(), c.what());
                    assertEquals(1, copy.waits().size(), c.what());
                    Raised awaited = copy.waits().getFirst();
                    assertEquals(rank, awaited.at(), c.what());
                    Copy before =
                            c.arrivals().get(rank).stream()
                                    .filter(other -> other.flag() == awaited.word())
                                    .findAny()
                                    .orElseThrow(() -> new AssertionError(c.what()));
                    assertTrue(
                            c.lists()
                                    .get(awaited.by())
                                    .lanes()
                                    .get(awaited.lane())
                                    .contains(before),
                            c.what());
                    assertEquals(copy.source(), before.source(), c.what());
                    assertEquals(copy.firstRow(), before.firstRow(), c.what());
                    assertEquals(copy.rows(), before.rows(), c.what());
                    assertEquals(copy.firstCol(), before.firstCol(), c.what());
                    assertEquals(copy.cols(), before.cols(), c.what());
                }
            }
        }
    }

    /** In the order in which they come, so that no row waits for a copy behind that of the next. */
    @Test
    void ownRowsComeFirstAndTheOthersAsTheyArrive() {
        for (long seed : seeds()) {
            Case c = Case.randomlyCut(seed);
            for (int rank = 0; rank < c.lists().size(); rank++) {
                CopyList list = c.lists().get(rank);
                List<Integer> awaited = new ArrayList<>();
                for (RowRange range : list.ranges()) {
                    boolean own = range.source() == rank;
                    assertTrue(!own || awaited.isEmpty(), c.what());
                    assertEquals(own, range.pieces().isEmpty(), c.what());
                    range.pieces().forEach(piece -> awaited.add(piece.flag()));
                }
                List<Integer> published =
                        list.lanes().stream().flatMap(List::stream).map(Copy::flag).toList();
                assertEquals(published, awaited, c.what());
            }
        }
    }

    @Test
    void noStretchIsNarrowUnlessTheCutSaysSo() {
        for (Algorithm algorithm : List.of(Algorithm.MESH_PULL, Algorithm.RING)) {
            for (long seed : seeds()) {
                Case c = Case.random(algorithm, seed);
                for (CopyList list : c.lists()) {
                    assertTrue(list.ranges().stream().noneMatch(RowRange::narrow), c.what());
                }
            }
        }
        int narrow = 0;
        for (long seed : seeds()) {
            for (CopyList list : Case.randomlyCut(seed).lists()) {
                boolean before = false;
                for (RowRange range : list.ranges()) {
                    assertTrue(range.narrow() || !before, "seed " + seed);
                    before = range.narrow();
                }
                narrow += before ? 1 : 0;
            }
        }
        assertTrue(narrow > 100, narrow + " lists end narrow");
    }

    @Test
    void chunksAreCutAsTheCutSays() {
        Chunks chunks = Chunks.byRows(Shards.even(1024, 2), 512, 256, 256);
        ArrivalCut cut =
                new ArrivalCut(
                        List.of(
                                List.of(new Block(256, List.of(512L), false)),
                                List.of(
                                        new Block(160, List.of(512L), false),
                                        new Block(96, List.of(256L, 192L, 64L), true))));
        CopyList list =
                CopyList.of(plans(Algorithm.MESH_PULL, chunks, 1, Set.of()), 0, chunks, cut);
        assertEquals(4 + 3, list.flags());
        assertEquals(
                List.of(
                        new Copy(1, 0, 1, 0, 256, 0, 512, 2, 0, 0, List.of()),
                        new Copy(1, 0, 1, 256, 160, 0, 512, 3, 0, 0, List.of()),
                        new Copy(1, 0, 1, 416, 96, 0, 256, 4, 0, 0, List.of()),
                        new Copy(1, 0, 1, 416, 96, 256, 192, 5, 0, 0, List.of()),
                        new Copy(1, 0, 1, 416, 96, 448, 64, 6, 0, 0, List.of())),
                list.lanes().getFirst());
        assertEquals(
                List.of(
                        new RowRange(0, 0, 0, 256, List.of(), false),
                        new RowRange(0, 256, 256, 256, List.of(), false),
                        new RowRange(1, 0, 512, 256, List.of(new Piece(0, 256, 0, 2)), false),
                        new RowRange(1, 256, 768, 160, List.of(new Piece(256, 160, 0, 3)), false),
                        new RowRange(
                                1,
                                416,
                                928,
                                96,
                                List.of(
                                        new Piece(416, 96, 0, 4),
                                        new Piece(416, 96, 256, 5),
                                        new Piece(416, 96, 448, 6)),
                                true)),
                list.ranges());
    }

    @Test
    void theFirstSliceOfAChunkHasItsFlag() {
        Chunks chunks = Chunks.byRows(Shards.even(512, 2), 128, 256, 256);
        CopyList list =
                CopyList.of(
                        plans(Algorithm.MESH_PULL, chunks, 1, Set.of()),
                        1,
                        chunks,
                        new ArrivalCut(List.of(List.of(new Block(256, List.of(64L, 64L), false)))));
        assertEquals(
                List.of(
                        new Copy(0, 1, 0, 0, 256, 0, 64, 0, 0, 0, List.of()),
                        new Copy(0, 1, 0, 0, 256, 64, 64, 2, 0, 0, List.of())),
                list.lanes().getFirst());
    }

    @Test
    void aChunkOfSeveralBlocksIsAwaitedAsAWhole() {
        Chunks chunks = Chunks.byRows(Shards.even(512, 2), 128, 256, 64);
        CopyList list = list(Algorithm.MESH_PULL, chunks, 0);
        assertEquals(8, list.ranges().size());
        for (RowRange range : list.ranges().subList(4, 8)) {
            assertEquals(List.of(new Piece(0, 256, 0, 1)), range.pieces());
        }
    }

    @Test
    void whatIsMultipliedAfterTheGatherWaitsForNothing() {
        Chunks chunks = Chunks.byRows(Shards.even(512, 2), 128, 256, 256);
        CopyList list = list(Algorithm.SEQUENTIAL, chunks, 0);
        assertEquals(2, list.flags());
        assertEquals(
                List.of(new Copy(1, 0, 1, 0, 256, 0, 128, 1, 0, 0, List.of())),
                list.lanes().getFirst());
        assertTrue(list.ranges().stream().allMatch(range -> range.pieces().isEmpty()));
        CopyList gated = list(Algorithm.MESH_PULL, chunks, 0);
        assertEquals(list.lanes(), gated.lanes());
        assertNotEquals(list.ranges(), gated.ranges());
    }

    @Test
    void copiesOneBehindTheOtherInGatheredACanBeOne() {
        Shards shards = Shards.of(1, 2, 0, 3);
        Chunks chunks = Chunks.byRows(shards, 16, 64, 64);
        List<Copy> first = list(Algorithm.MESH_PULL, chunks, 0).lanes().getFirst();
        // The rows of ranks 2, 3 and then 0.
        List<Copy> second = list(Algorithm.MESH_PULL, chunks, 1).lanes().getFirst();
        DeviceLayout below = new DeviceLayout(shards, DType.FP16, 16, DeviceLayout.Place.ROWS);
        assertArrayEquals(new int[] {2, 2}, CopyList.adjacent(first, below));
        assertArrayEquals(new int[] {1, 2}, CopyList.adjacent(second, below));
        DeviceLayout beside = new DeviceLayout(shards, DType.FP16, 16, DeviceLayout.Place.COLUMNS);
        assertArrayEquals(new int[] {1, 2}, CopyList.adjacent(first, beside));
    }
}
