package dev.weft.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.cut.ArrivalCut.Block;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import dev.weft.sim.TileEngine;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What arrives, in blocks and slices that the grid can take one by one. */
class ArrivalCutsTest {

    /** A of fp32 as fast as of 16 bits, so that longer rows are tried too. */
    private static final Machine H200 = withFp32(Machines.named("h200-pcie"));

    private static final TileGrid CLUSTERS = grid(256, 256, 128, 66);
    private static final TileGrid MMA = grid(128, 256, 128, 132);
    private static final List<TileGrid> SHAPES = List.of(CLUSTERS, grid(128, 128, 128, 264), MMA);
    private static final long CHUNK_BYTES = 16L << 20;

    private static TileGrid grid(int rows, int width, int narrowWidth, int workers) {
        return new TileGrid(rows, width, narrowWidth, workers, 64);
    }

    private static Machine withFp32(Machine machine) {
        TileEngine engine = (TileEngine) machine.engine();
        double rate = engine.gflops().get(DType.FP16);
        return machine.withEngine(
                new TileEngine(
                        engine.units(),
                        engine.tileRows(),
                        engine.tileCols(),
                        Map.of(DType.FP16, rate, DType.FP32, rate),
                        engine.tileUs()));
    }

    /** What a rank multiplies, and how it is cut. */
    private record Problem(
            long ownRows, List<Long> chunkRows, long k, long n, DType type, TileGrid shape) {

        static Problem even(int ranks, long m, long k, long n, TileGrid shape) {
            long rows = m / ranks;
            return new Problem(rows, Collections.nCopies(ranks - 1, rows), k, n, DType.FP16, shape);
        }

        static Problem random(Random random) {
            TileGrid shape =
                    random.nextBoolean()
                            ? SHAPES.get(random.nextInt(SHAPES.size()))
                            : grid(256, 256, 128, 1 + random.nextInt(200));
            List<Long> chunkRows = new ArrayList<>();
            for (int chunks = random.nextInt(8); chunks > 0; chunks--) {
                chunkRows.add(1L + random.nextInt(random.nextBoolean() ? 300 : 5000));
            }
            return new Problem(
                    random.nextInt(5000),
                    chunkRows,
                    1 + random.nextInt(random.nextBoolean() ? 1500 : 40_000),
                    1 + random.nextInt(random.nextBoolean() ? 1500 : 30_000),
                    random.nextBoolean() ? DType.FP16 : DType.FP32,
                    shape);
        }

        ArrivalCut cut() {
            return ArrivalCuts.of(H200, shape, type, k, n, ownRows, chunkRows);
        }

        ArrivalCut uncut() {
            return new ArrivalCut(
                    chunkRows.stream()
                            .map(rows -> List.of(new Block(rows, List.of(k), false)))
                            .toList());
        }

        ArrivalPrice price() {
            return new ArrivalPrice(H200, shape, type, k, n, ownRows);
        }

        void assertCut(String what) {
            ArrivalCut cut = cut();
            String told = what + ", " + this + ": " + cut;
            assertWhole(cut.chunks(), told);
            if (price().isGatherBound()) {
                assertTail(cut.chunks(), told);
                assertTrue(price().us(cut) <= price().us(uncut()), told);
            } else {
                assertBySize(cut.chunks(), told);
            }
        }

        /** Every element once, in slices that gates can be placed at. */
        private void assertWhole(List<List<Block>> chunks, String told) {
            assertEquals(chunkRows.size(), chunks.size(), told);
            for (int c = 0; c < chunks.size(); c++) {
                List<Block> blocks = chunks.get(c);
                long rows = sum(blocks.stream().map(Block::rows).toList());
                assertEquals(chunkRows.get(c), rows, told);
                for (Block block : blocks) {
                    assertTrue(block.rows() >= 1, told);
                    assertEquals(k, sum(block.cols()), told);
                    assertTrue(block.cols().size() <= 5, told);
                    for (long cols : block.cols()) {
                        assertTrue(cols >= 1, told);
                    }
                    for (long cols : block.cols().subList(0, block.cols().size() - 1)) {
                        assertEquals(0, cols % 64, told);
                    }
                    boolean last = c == chunks.size() - 1 && block == blocks.getLast();
                    assertTrue(last || !block.narrow(), told);
                }
            }
        }

        private static long sum(List<Long> numbers) {
            return numbers.stream().mapToLong(Long::longValue).sum();
        }

        /** Of the chunks before the last one, one may be in two blocks, or slices. */
        private void assertTail(List<List<Block>> chunks, String told) {
            int cuts = 0;
            for (int c = 0; c < chunks.size() - 1; c++) {
                List<Block> blocks = chunks.get(c);
                boolean sliced = c == chunks.size() - 2 && blocks.size() == 1;
                assertTrue(blocks.getFirst().cols().size() <= (sliced ? 2 : 1), told);
                if (blocks.size() > 1) {
                    cuts++;
                    assertEquals(2, blocks.size(), told);
                    assertEquals(0, blocks.getLast().rows() % shape.rows(), told);
                }
            }
            assertTrue(cuts <= 1, told);
            if (chunks.isEmpty()) {
                return;
            }
            List<Block> blocks = chunks.getLast();
            assertTrue(blocks.size() <= 3, told);
            for (Block block : blocks.subList(0, blocks.size() - 1)) {
                assertEquals(1, block.cols().size(), told);
            }
            Block tail = blocks.getLast();
            if (tail.cols().size() > 1) {
                // Narrower ones would travel slower than the link.
                tail.cols().forEach(cols -> assertTrue(cols * type.bytes() >= 512, told));
            }
            if (tail.cols().size() > 1 || tail.narrow()) {
                // One round of the workers, unless a single row of tiles is more than that.
                long down = Math.ceilDiv(tail.rows(), shape.rows());
                int width = tail.narrow() ? shape.narrowWidth() : shape.width();
                assertTrue(down == 1 || down * Math.ceilDiv(n, width) <= shape.workers(), told);
            }
        }

        /** Blocks as large as 16 MiB allow, but of 256 rows where those are larger. */
        private void assertBySize(List<List<Block>> chunks, String told) {
            for (List<Block> blocks : chunks) {
                for (Block block : blocks) {
                    long rowBytes = k * type.bytes();
                    assertEquals(List.of(k), block.cols(), told);
                    assertFalse(block.narrow(), told);
                    assertTrue(block.rows() * rowBytes <= CHUNK_BYTES || block.rows() <= 256, told);
                    if (block != blocks.getLast()) {
                        assertEquals(0, block.rows() % 256, told);
                        assertTrue((block.rows() + 256) * rowBytes > CHUNK_BYTES, told);
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "2, 2048, 2048, 1024, true",
        "2, 4096, 4096, 4096, true",
        "2, 8192, 4096, 4096, true",
        "4, 8192, 4096, 4096, true",
        "8, 8192, 4096, 4096, true",
        "8, 16384, 4096, 4096, true",
        "8, 4096, 16384, 6656, true",
        "8, 8192, 4096, 14336, false",
        "4, 8192, 8192, 28672, false",
    })
    void theShapesThatAreMeasured(int ranks, long m, long k, long n, boolean gatherBound) {
        Problem problem = Problem.even(ranks, m, k, n, CLUSTERS);
        problem.assertCut("of " + ranks + " ranks");
        ArrivalPrice price = problem.price();
        assertEquals(gatherBound, price.isGatherBound());
        if (gatherBound) {
            double cutUs = price.us(problem.cut());
            double uncutUs = price.us(problem.uncut());
            assertTrue(cutUs < uncutUs, cutUs + " us, uncut " + uncutUs + ": " + problem.cut());
        }
        Problem.even(ranks, m, k, n, MMA).assertCut("of " + ranks + " ranks");
    }

    /** As they were when gpu-h200.md was measured: figures of the model must not move them. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "2 | 2048 | 2048 | 1024 | 1024x1664+384n",
                "2 | 4096 | 4096 | 4096 | 512x4096 1024x4096 512x3264+832n",
                "2 | 8192 | 4096 | 4096 | 2560x4096 1024x4096 512x3264+832n",
                "4 | 8192 | 4096 | 4096 | 2 of 2048x4096; 512x4096 1024x4096 512x3264+832n",
                "8 | 8192 | 4096 | 4096 | 6 of 1024x4096; 512x4096 512x3264+832n",
                "8 | 16384 | 4096 | 4096 | 6 of 2048x4096; 512x4096 1024x4096 512x3264+832n",
                "8 | 4096 | 16384 | 6656 | 6 of 512x16384; 512x7936+5120+3328",
                "8 | 8192 | 4096 | 14336 | 7 of 1024x4096",
                "4 | 8192 | 8192 | 28672 | 3 of 1024x8192 1024x8192",
            })
    void theMeasuredShapesAreCutAsTheyWereMeasured(int ranks, long m, long k, long n, String cut) {
        for (TileGrid grid : List.of(CLUSTERS, MMA)) {
            assertEquals(cut, text(Problem.even(ranks, m, k, n, grid).cut()));
        }
    }

    @Test
    void withoutACutEveryChunkComesWhole() {
        assertEquals("3 of 8x4096", text(ArrivalCuts.none(4096, List.of(8L, 8L, 8L))));
    }

    /** Chunks, in them blocks, as rows x columns of their slices, n for narrow tiles. */
    private static String text(ArrivalCut cut) {
        List<String> chunks = new ArrayList<>();
        for (List<Block> chunk : cut.chunks()) {
            chunks.add(chunk.stream().map(ArrivalCutsTest::text).collect(Collectors.joining(" ")));
        }
        List<String> runs = new ArrayList<>();
        for (int i = 0; i < chunks.size(); ) {
            int next = i;
            while (next < chunks.size() && chunks.get(next).equals(chunks.get(i))) {
                next++;
            }
            runs.add((next - i > 1 ? next - i + " of " : "") + chunks.get(i));
            i = next;
        }
        return String.join("; ", runs);
    }

    private static String text(Block block) {
        String cols = block.cols().stream().map(String::valueOf).collect(Collectors.joining("+"));
        return block.rows() + "x" + cols + (block.narrow() ? "n" : "");
    }

    @Test
    void aMachineWithoutTilesOrWithoutARateIsRefused() {
        List<Long> rows = List.of(512L);
        for (String name : List.of("cpu-1gbe", "h200-pcie")) {
            Machine machine = Machines.named(name);
            assertThrows(
                    IllegalArgumentException.class,
                    () -> ArrivalCuts.of(machine, MMA, DType.FP32, 64, 64, 512, rows));
        }
    }

    @Test
    void randomShapes() {
        int gatherBound = 0;
        int sooner = 0;
        for (long seed = 1; seed <= 1000; seed++) {
            Problem problem = Problem.random(new Random(seed));
            problem.assertCut("seed " + seed);
            if (problem.price().isGatherBound() && !problem.chunkRows().isEmpty()) {
                gatherBound++;
                ArrivalPrice price = problem.price();
                sooner += price.us(problem.cut()) < price.us(problem.uncut()) ? 1 : 0;
            }
        }
        // Both kinds are among them, and a cut is seldom in vain.
        assertTrue(gatherBound > 100 && gatherBound < 900, gatherBound + " gather-bound");
        assertTrue(sooner * 2 > gatherBound, sooner + " of " + gatherBound + " end sooner");
    }

    /** Else the long chunk would still be multiplied when the last rows are there. */
    @Test
    void aLongChunkBeforeAShortOneIsCutByRows() {
        Problem uneven = new Problem(3000, List.of(4191L, 1001L), 4096, 4096, DType.FP16, CLUSTERS);
        uneven.assertCut("uneven");
        assertTrue(uneven.cut().chunks().getFirst().size() > 1, text(uneven.cut()));
        ArrivalPrice price = uneven.price();
        double saved = price.us(uneven.uncut()) - price.us(uneven.cut());
        // All but one of the four rounds of the first chunk.
        assertTrue(saved > 100, saved + " us with " + text(uneven.cut()));
    }

    @Test
    void theSameSizesGiveTheSameCut() {
        Problem problem = Problem.even(8, 8192, 4096, 4096, CLUSTERS);
        assertEquals(problem.cut(), problem.cut());
    }

    @Test
    void nothingArrivesWhereThereAreNoPeers() {
        assertEquals(List.of(), Problem.even(1, 4096, 4096, 4096, CLUSTERS).cut().chunks());
        assertEquals(List.of(), Problem.even(1, 4096, 4096, 28_672, CLUSTERS).cut().chunks());
    }

    /** A second copy costs more than what is left to multiply after the first. */
    @Test
    void whatIsMultipliedSoonerThanACopyCostsIsNotSliced() {
        for (Block block : Problem.even(2, 1024, 1024, 1024, CLUSTERS).cut().chunks().getLast()) {
            assertEquals(List.of(1024L), block.cols());
        }
    }

    @Test
    void aComputeBoundChunkIsCutEvery16Mebibytes() {
        // 16 MiB are 1024 rows of 8192 elements of two bytes.
        Problem problem =
                new Problem(2048, List.of(2048L, 1500L, 100L), 8192, 28_672, DType.FP16, CLUSTERS);
        assertEquals(
                List.of(List.of(1024L, 1024L), List.of(1024L, 476L), List.of(100L)),
                problem.cut().chunks().stream()
                        .map(blocks -> blocks.stream().map(Block::rows).toList())
                        .toList());
    }

    /** Of one chunk, 4096 x 4096 elements of B, where {@code ownRows} are there from the start. */
    private static double us(long ownRows, Block... blocks) {
        return new ArrivalPrice(H200, CLUSTERS, DType.FP16, 4096, 4096, ownRows)
                .us(new ArrivalCut(List.of(List.of(blocks))));
    }

    @Test
    void aPriceFallsByWhatNeedNotBeMultipliedAtTheEnd() {
        Block whole = new Block(1024, List.of(4096L), false);
        Block[] twoRows = {
            new Block(768, List.of(4096L), false), new Block(256, List.of(4096L), false)
        };
        Block[] narrow = {twoRows[0], new Block(256, List.of(4096L), true)};
        Block sliced = new Block(1024, List.of(2048L, 1024L, 1024L), false);
        assertTrue(us(0, narrow) < us(0, twoRows), "half as wide, half as long");
        assertTrue(us(0, sliced) < us(0, whole), "a quarter of K is left");
        // Where own rows keep the grid busy for longer, slices change nothing, ...
        assertEquals(us(16_384, whole), us(16_384, sliced), 1e-6);
        // ... and too many of them cost the link more than they save.
        List<Long> slivers = Collections.nCopies(64, 64L);
        assertTrue(us(0, new Block(1024, slivers, false)) > us(0, whole), "64 copies");
    }

    @Test
    void everyCopyHasItsPrice() {
        Block two = new Block(2048, List.of(4096L), false);
        Block one = new Block(1024, List.of(4096L), false);
        assertTrue(us(0, one, one, two) > us(0, two, two), "three copies of as many bytes as two");
    }
}
