package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.cuda.kernel.TileSchedule.Counter;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Every element of C once, and every tile behind the gates of its rows. */
class TileScheduleTest {

    private static final TileShape HOPPER = new TileShape(128, 256, 128, 132);

    /** A tile as the kernels read it. */
    private record Tile(
            int row, int rows, int col, int width, int source, int sourceRow, int gate, int gates) {

        static Tile at(TileSchedule schedule, int index) {
            int[] t = schedule.tiles();
            int i = index * TileSchedule.TILE_INTS;
            return new Tile(
                    t[i], t[i + 1], t[i + 2], t[i + 3], t[i + 4], t[i + 5], t[i + 6], t[i + 7]);
        }
    }

    private static List<Tile> tiles(TileSchedule schedule) {
        List<Tile> tiles = new ArrayList<>();
        for (int i = 0; i < schedule.tileCount(); i++) {
            tiles.add(Tile.at(schedule, i));
        }
        return tiles;
    }

    private static RowRange there(long row, long rows, boolean narrow) {
        return new RowRange(0, row, row, rows, List.of(), narrow);
    }

    private static List<Integer> widths(TileSchedule schedule) {
        return tiles(schedule).stream().map(Tile::width).toList();
    }

    /** C and its ranges; the rows of a source need not lie where they lie in C. */
    private record Problem(long seed, long m, long n, TileShape shape, List<RowRange> ranges) {

        static Problem random(long seed) {
            Random random = new Random(seed);
            int narrow = 4 << random.nextInt(3);
            TileShape shape =
                    new TileShape(
                            1 + random.nextInt(9),
                            random.nextInt(3) == 0 ? narrow : 2 * narrow,
                            narrow,
                            1 + random.nextInt(40));
            List<RowRange> ranges = new ArrayList<>();
            long row = 0;
            int flags = 0;
            for (int s = 0; s < 1 + random.nextInt(6); s++) {
                long rows = random.nextInt(5) == 0 ? 0 : 1 + random.nextInt(50);
                long sourceRow = random.nextInt(100);
                List<Piece> pieces = s == 0 ? List.of() : pieces(random, sourceRow, rows, flags);
                flags += pieces.size();
                ranges.add(new RowRange(s % 3, sourceRow, row, rows, pieces, false));
                row += rows;
            }
            Collections.shuffle(ranges.subList(1, ranges.size()), random);
            narrowFrom(ranges, random.nextInt(2 * ranges.size()));
            return new Problem(seed, row, 1 + random.nextInt(120), shape, ranges);
        }

        /** Makes all ranges narrow from one on, or none where there is no such one. */
        private static void narrowFrom(List<RowRange> ranges, int first) {
            for (int i = first; i < ranges.size(); i++) {
                RowRange s = ranges.get(i);
                ranges.set(
                        i,
                        new RowRange(
                                s.source(), s.sourceRow(), s.row(), s.rows(), s.pieces(), true));
            }
        }

        /** A grid of pieces over the range and some rows before and behind it. */
        private static List<Piece> pieces(Random random, long sourceRow, long rows, int firstFlag) {
            List<Piece> pieces = new ArrayList<>();
            int flag = firstFlag;
            long end = sourceRow + rows + random.nextInt(10);
            for (long row = Math.max(0, sourceRow - 10); row < end; ) {
                long height = 1 + random.nextInt(20);
                long col = 0;
                for (int i = 0; i <= random.nextInt(4); i++) {
                    pieces.add(new Piece(row, height, col, flag++));
                    col += 1 + random.nextInt(200);
                }
                row += height;
            }
            Collections.shuffle(pieces, random);
            return pieces;
        }

        /** The number of the range that holds a tile's rows. */
        int stretchOf(Tile tile) {
            for (int i = 0; i < ranges.size(); i++) {
                RowRange s = ranges.get(i);
                if (tile.row() >= s.row() && tile.row() + tile.rows() <= s.row() + s.rows()) {
                    return i;
                }
            }
            throw new AssertionError(tile + " lies in no range, seed " + seed);
        }
    }

    @Test
    void randomStretchesAreCoveredOnceInOrderAndBehindTheirGates() {
        for (long seed = 1; seed <= 3000; seed++) {
            Problem problem = Problem.random(seed);
            TileSchedule schedule = TileSchedule.of(problem.ranges(), problem.n(), problem.shape());
            assertCovered(problem, schedule);
            assertOrdered(problem, schedule);
            for (Tile tile : tiles(schedule)) {
                assertGates(problem, schedule, tile);
            }
        }
    }

    private static void assertCovered(Problem problem, TileSchedule schedule) {
        int n = (int) problem.n();
        int[] times = new int[(int) problem.m() * n];
        for (Tile tile : tiles(schedule)) {
            String what = tile + ", seed " + problem.seed();
            TileShape shape = problem.shape();
            assertTrue(tile.rows() >= 1 && tile.rows() <= shape.rows(), what);
            assertTrue(
                    List.of(shape.width(), shape.middleWidth(), shape.narrowWidth())
                            .contains(tile.width()),
                    what);
            RowRange range = problem.ranges().get(problem.stretchOf(tile));
            assertEquals(range.source(), tile.source(), what);
            assertTrue(!range.narrow() || tile.width() == shape.narrowWidth(), what);
            assertEquals(tile.row() - range.row(), tile.sourceRow() - range.sourceRow(), what);
            for (int row = tile.row(); row < tile.row() + tile.rows(); row++) {
                for (int col = tile.col(); col < Math.min(n, tile.col() + tile.width()); col++) {
                    times[row * n + col]++;
                }
            }
        }
        for (int i = 0; i < times.length; i++) {
            assertEquals(
                    1, times[i], "element [" + i / n + ", " + i % n + "], seed " + problem.seed());
        }
    }

    /** RowRange after range, and no tile is wider than one before it. */
    private static void assertOrdered(Problem problem, TileSchedule schedule) {
        int before = 0;
        int width = problem.shape().width();
        for (Tile tile : tiles(schedule)) {
            int range = problem.stretchOf(tile);
            assertTrue(range >= before, tile + ", seed " + problem.seed());
            assertTrue(tile.width() <= width, tile + ", seed " + problem.seed());
            before = range;
            width = tile.width();
        }
    }

    private static void assertGates(Problem problem, TileSchedule schedule, Tile tile) {
        String what = tile + ", seed " + problem.seed();
        List<List<Integer>> expected = new ArrayList<>();
        for (Piece piece : problem.ranges().get(problem.stretchOf(tile)).pieces()) {
            boolean touches = false;
            for (long row = tile.sourceRow(); row < tile.sourceRow() + tile.rows(); row++) {
                touches |= row >= piece.firstRow() && row < piece.firstRow() + piece.rows();
            }
            if (touches) {
                expected.add(List.of((int) (piece.firstCol() / 64), piece.flag()));
            }
        }
        List<List<Integer>> actual = new ArrayList<>();
        int before = 0;
        for (int gate = tile.gate(); gate < tile.gate() + tile.gates(); gate++) {
            int kBlock = schedule.gates()[gate * TileSchedule.GATE_INTS];
            assertTrue(kBlock >= before, what);
            before = kBlock;
            actual.add(List.of(kBlock, schedule.gates()[gate * TileSchedule.GATE_INTS + 1]));
        }
        assertEquals(expected.size(), actual.size(), what);
        assertTrue(actual.containsAll(expected), what + ": " + actual + ", not " + expected);
    }

    @Test
    void aLastRoundThatLeavesHalfOfTheWorkersIdleIsCutInTwo() {
        // 32 x 26 tiles: six rounds of 132, and 40 more.
        TileSchedule schedule = TileSchedule.of(List.of(there(0, 4096, false)), 6656, HOPPER);
        List<Integer> widths = widths(schedule);
        assertEquals(792 + 80, widths.size());
        assertEquals(Collections.nCopies(792, 256), widths.subList(0, 792));
        assertEquals(Collections.nCopies(80, 128), widths.subList(792, 872));
    }

    @Test
    void aLastRoundThatLeavesFewWorkersIdleIsCutToThreeQuarters() {
        // 64 x 16 tiles: 15 rounds of 66, and 34 more, over half of the workers.
        TileSchedule schedule =
                TileSchedule.of(
                        List.of(there(0, 16_384, false)), 4096, new TileShape(256, 256, 128, 66));
        List<Integer> widths = widths(schedule);
        assertTrue(widths.contains(192), "three quarters");
        assertEquals(0, Collections.frequency(widths, 128));
        int last = Collections.frequency(widths, 192);
        assertEquals(
                Collections.nCopies(last, 192),
                widths.subList(widths.size() - last, widths.size()));
        // There are no more rounds than before.
        assertEquals(16, Math.ceilDiv(widths.size(), 66));
    }

    @Test
    void aLastRoundThatIsFullOrOfAKernelWithOneWidthStays() {
        for (TileShape shape :
                List.of(
                        new TileShape(128, 256, 128, 104),
                        new TileShape(128, 256, 256, 132),
                        new TileShape(128, 256, 256, 78))) {
            TileSchedule schedule = TileSchedule.of(List.of(there(0, 4096, false)), 6656, shape);
            assertEquals(832, Collections.frequency(widths(schedule), 256), shape.toString());
            assertEquals(832, schedule.tileCount(), shape.toString());
        }
    }

    @Test
    void theTilesOfANarrowStretchAreNarrow() {
        List<RowRange> ranges = List.of(there(0, 4096, false), there(4096, 512, true));
        List<Integer> widths = widths(TileSchedule.of(ranges, 4096, HOPPER));
        assertEquals(Collections.nCopies(512, 256), widths.subList(0, 512));
        assertEquals(Collections.nCopies(128, 128), widths.subList(512, widths.size()));
    }

    /** However many rounds they take: how they fill the card is the caller's choice. */
    @Test
    void narrowStretchesAreNotEvenedOut() {
        // 4 x 33 tiles are one round of the 132 workers, 4 x 34 leave 4, 4 x 51 leave 72.
        for (int across : new int[] {1, 32, 33, 34, 51}) {
            TileSchedule schedule =
                    TileSchedule.of(List.of(there(0, 512, true)), across * 128L, HOPPER);
            assertEquals(Collections.nCopies(4 * across, 128), widths(schedule));
        }
    }

    /** A worker that had two of them would start the second when the last slice has come. */
    @Test
    void tilesThatWaitForSlicesAreNotEvenedOut() {
        Piece whole = new Piece(0, 4096, 0, 0);
        Piece slice = new Piece(0, 4096, 1024, 1);
        RowRange sliced = new RowRange(0, 0, 0, 4096, List.of(whole, slice), false);
        assertEquals(
                Collections.nCopies(832, 256),
                widths(TileSchedule.of(List.of(sliced), 6656, HOPPER)));
        // One that waits before its first columns only is cut as if it were there.
        RowRange gated = new RowRange(0, 0, 0, 4096, List.of(whole), false);
        assertEquals(
                widths(TileSchedule.of(List.of(there(0, 4096, false)), 6656, HOPPER)),
                widths(TileSchedule.of(List.of(gated), 6656, HOPPER)));
    }

    @Test
    void aNarrowStretchOfNoRowsLetsTheTilesBeforeItBeEvenedOut() {
        RowRange wide = there(0, 4096, false);
        TileSchedule alone = TileSchedule.of(List.of(wide), 6656, HOPPER);
        TileSchedule followed = TileSchedule.of(List.of(wide, there(4096, 0, true)), 6656, HOPPER);
        assertEquals(tiles(alone), tiles(followed));
    }

    @Test
    void fewRowsOfSeveralShardsAreOneRowOfTiles() {
        List<RowRange> shards =
                List.of(
                        new RowRange(1, 0, 30, 10, List.of(), false),
                        new RowRange(2, 0, 40, 20, List.of(new Piece(0, 20, 0, 1)), false),
                        new RowRange(0, 0, 0, 30, List.of(new Piece(0, 30, 0, 0)), false));
        RowRange whole = RowRange.whole(shards, 60);
        assertEquals(List.of(new Piece(0, 60, 0, 1), new Piece(0, 60, 0, 0)), whole.pieces());
        TileShape shape = new TileShape(128, 256, 256, 4);
        TileSchedule schedule = TileSchedule.of(List.of(whole), 8192, shape);
        assertEquals(32, schedule.tileCount());
        assertEquals(new Tile(0, 60, 256, 256, 0, 0, 0, 2), tiles(schedule).get(1));
        assertArrayEquals(new int[] {0, 0, 1, 0, 0, 0, 1, 1, 0, 1}, schedule.gates());
    }

    @Test
    void nothingToMultiplyIsNoTile() {
        TileSchedule schedule =
                TileSchedule.of(
                        List.of(new RowRange(0, 0, 0, 0, List.of(new Piece(0, 5, 0, 0)), true)),
                        64,
                        HOPPER);
        assertEquals(0, schedule.tileCount());
        assertArrayEquals(new int[0], TileSchedule.of(List.of(), 64, HOPPER).tiles());
    }

    @Test
    void tilesSideBySideShareTheirGates() {
        RowRange range =
                new RowRange(
                        0,
                        0,
                        0,
                        256,
                        List.of(
                                new Piece(0, 128, 0, 7),
                                new Piece(128, 128, 640, 9),
                                new Piece(128, 128, 0, 8)),
                        false);
        TileSchedule schedule =
                TileSchedule.of(List.of(range), 512, new TileShape(128, 256, 256, 4));
        assertArrayEquals(
                new int[] {0, 7, 1, 0, 7, 0, 8, 1, 0, 8, 10, 9, 1, 0, 9}, schedule.gates());
        // The counter of each lane that brings a tile's rows, before the first flag.
        TileSchedule counted =
                TileSchedule.of(
                        List.of(range),
                        512,
                        new TileShape(128, 256, 256, 4),
                        Map.of(
                                7, new Counter(40, 9, 3),
                                8, new Counter(40, 9, 4),
                                9, new Counter(40, 9, 5)));
        assertArrayEquals(
                new int[] {
                    0, 40, 9, -6, 7, 0, 7, 1, 0, 7, 0, 40, 9, -4, 9, 0, 8, 1, 0, 8, 10, 9, 1, 0, 9
                },
                counted.gates());
        assertEquals(
                List.of(
                        new Tile(0, 128, 0, 256, 0, 0, 0, 1),
                        new Tile(128, 128, 0, 256, 0, 128, 1, 2),
                        new Tile(0, 128, 256, 256, 0, 0, 0, 1),
                        new Tile(128, 128, 256, 256, 0, 128, 1, 2)),
                tiles(schedule));
    }
}
