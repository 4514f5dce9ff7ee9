package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.GatherView.Block;
import dev.weft.plan.GatherView.Move;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class RingAllGatherMatmulTest {

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 8, 16})
    void everySlotIsASourcesRowsTimesOwnColumns(int ranks) {
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(
                        arena, ranks, 13, 70, 11L * ranks, DType.BF16, DType.BF16, ranks);
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (RingAllGatherMatmul<Matrix> ring =
                            RingAllGatherMatmul.prepare(
                                    fabric, 13, DType.BF16, problem.rhs(rank))) {
                        for (int call = 0; call < 4; call++) {
                            problem.assertBitwise(ring.call(problem.lhs(rank)), rank);
                        }
                        problem.assertClose(ring.call(problem.lhs(rank)), rank);
                        assertTrue(ring.operator().lastResult().elapsedNs() > 0);
                    }
                });
    }

    /** Each program multiplies its half of every fragment's rows, and the product is the same. */
    @ParameterizedTest
    @CsvSource({"1, 13", "2, 13", "3, 1", "4, 128", "5, 2"})
    void twoProgramsShareEveryFragment(int ranks, long m) {
        Arena arena = Arena.ofAuto();
        FgccProblem problem =
                FgccProblem.create(arena, ranks, m, 70, 11L * ranks, DType.BF16, DType.BF16, ranks);
        Ranks.run(
                ranks,
                fabric -> {
                    int rank = fabric.rank();
                    try (RingAllGatherMatmul<Matrix> ring =
                            RingAllGatherMatmul.prepare(
                                    Place.HOST, fabric, m, DType.BF16, problem.rhs(rank), 2)) {
                        for (int call = 0; call < 3; call++) {
                            problem.assertBitwise(ring.call(problem.lhs(rank)), rank);
                        }
                        long half = Math.ceilDiv(m, 2);
                        for (Block block : FgccProblem.plan(ring.operator()).consumption()) {
                            assertEquals(block.firstRow() / half, block.program());
                            assertTrue(block.firstRow() % half + block.rows() <= half);
                        }
                    }
                });
    }

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"FP32", "FP16", "BF16"})
    void theOutputHasTheTypeOfTheInputs(DType type) {
        Arena arena = Arena.ofAuto();
        FgccProblem problem = FgccProblem.create(arena, 2, 3, 5, 4, type, type, 1);
        Ranks.run(
                2,
                fabric -> {
                    try (RingAllGatherMatmul<Matrix> ring =
                            RingAllGatherMatmul.prepare(
                                    fabric, 3, type, problem.rhs(fabric.rank()))) {
                        Matrix product = ring.call(problem.lhs(fabric.rank()));
                        assertEquals(type, product.dtype());
                        problem.assertBitwise(product, fabric.rank());
                    }
                });
    }

    /** Step i: permute to the successor and product both read the fragment of rank - i. */
    @Test
    void eachStepPermutesTheFragmentThatItMultiplies() {
        int ranks = 5;
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.BF16, 8, 8);
        Ranks.run(
                ranks,
                fabric -> {
                    try (RingAllGatherMatmul<Matrix> ring =
                            RingAllGatherMatmul.prepare(fabric, 16, DType.BF16, b)) {
                        List<Move> permutes =
                                FgccProblem.transfers(FgccProblem.plan(ring.operator()));
                        assertEquals(ranks - 1, permutes.size());
                        List<Integer> products =
                                FgccProblem.sources(FgccProblem.plan(ring.operator()));
                        assertEquals(ranks, products.size());
                        for (int step = 0; step < ranks; step++) {
                            int source = Math.floorMod(fabric.rank() - step, ranks);
                            assertEquals(source, products.get(step));
                            if (step < ranks - 1) {
                                Move permute = permutes.get(step);
                                assertEquals(source, permute.source());
                                assertEquals((fabric.rank() + 1) % ranks, permute.to());
                                assertEquals((step + 1) % 2, permute.buffer());
                            }
                        }
                    }
                });
    }

    @Test
    void onlyTwoFragmentsAreKeptWhateverTheNumberOfRanks() {
        int ranks = 16;
        long fragmentBytes = Matrix.contiguousBytes(DType.BF16, 64, 512);
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.BF16, 512, 8);
        Ranks.run(
                ranks,
                fabric -> {
                    try (RingAllGatherMatmul<Matrix> ring =
                            RingAllGatherMatmul.prepare(fabric, 64, DType.BF16, b)) {
                        // Two places for the own shard, two ring buffers, some words.
                        assertTrue(ring.operator().reachableBytes() >= 4 * fragmentBytes);
                        assertTrue(
                                ring.operator().reachableBytes() <= 4 * fragmentBytes + (32 << 10));
                    }
                });
    }

    @Test
    void ranksWithDifferentNumbersOfRowsAreNamed() {
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.BF16, 8, 8);
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        Ranks.run(
                                                2,
                                                fabric ->
                                                        RingAllGatherMatmul.prepare(
                                                                fabric,
                                                                16L + fabric.rank(),
                                                                DType.BF16,
                                                                b)))
                        .getMessage();
        assertTrue(message.contains("rank 0") && message.contains("rank 1"), message);
    }
}
