package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.op.Operator.Candidate;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

class AutoTest {

    private static final Gemm ENGINE = Gemms.byName("scalar");

    private record Found(Algorithm algorithm, long chunkRows, List<Candidate> candidates) {}

    /** What auto finds on each rank for a problem of that many rows per rank. */
    private static List<Found> prepare(UnaryOperator<AllGatherMatmulBuilder> wishes, long... rows) {
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.FP32, 24, 8);
        return Ranks.call(
                rows.length,
                fabric -> {
                    try (AllGatherMatmul operator =
                            wishes.apply(
                                            AllGatherMatmul.on(fabric)
                                                    .a(Shards.of(rows), DType.FP32)
                                                    .b(b)
                                                    .engine(ENGINE))
                                    .prepare()) {
                        return new Found(
                                Algorithm.of(operator.plan().name()),
                                operator.plan().chunks().chunkRows(0),
                                operator.candidates());
                    }
                });
    }

    private static Candidate chosen(Found found) {
        List<Candidate> chosen = found.candidates().stream().filter(Candidate::chosen).toList();
        assertEquals(1, chosen.size(), found.toString());
        return chosen.getFirst();
    }

    @Test
    void allRanksTakeTheSamePlanAndItIsTheOneThatWasChosen() {
        List<Found> found = prepare(UnaryOperator.identity(), 40, 0, 17);
        for (Found each : found) {
            assertEquals(found.getFirst().algorithm(), each.algorithm());
            assertEquals(found.getFirst().chunkRows(), each.chunkRows());
            assertEquals(each.algorithm(), chosen(each).algorithm());
        }
    }

    @Test
    void theCheapestAndSequentialAreTriedAndNoneThatWasTriedIsMuchFaster() {
        List<Candidate> candidates = prepare(UnaryOperator.identity(), 41, 18).get(0).candidates();
        List<Candidate> tried = new ArrayList<>(candidates);
        tried.removeIf(candidate -> Double.isNaN(candidate.measuredNs()));
        assertTrue(tried.size() >= 2 && tried.size() <= 4, tried.toString());
        assertTrue(tried.stream().anyMatch(c -> c.algorithm() == Algorithm.SEQUENTIAL));
        double cheapest =
                candidates.stream().mapToDouble(Candidate::predictedNs).min().orElseThrow();
        assertTrue(tried.stream().anyMatch(c -> c.predictedNs() <= 1.10 * cheapest));
        double fastest = tried.stream().mapToDouble(Candidate::measuredNs).min().orElseThrow();
        double taken =
                tried.stream()
                        .filter(Candidate::chosen)
                        .mapToDouble(Candidate::measuredNs)
                        .findFirst()
                        .orElseThrow();
        assertTrue(taken <= 1.02 * fastest, tried.toString());
    }

    @Test
    void everyAlgorithmThatSharedMemoryAllowsIsPriced() {
        List<Candidate> candidates = prepare(UnaryOperator.identity(), 42, 19).get(0).candidates();
        for (Algorithm algorithm : Algorithm.values()) {
            boolean priced = candidates.stream().anyMatch(c -> c.algorithm() == algorithm);
            assertEquals(algorithm != Algorithm.AUTO, priced, algorithm.toString());
        }
    }

    @Test
    void aSecondOperatorForTheSameProblemIsNotTriedAgain() {
        List<Candidate> first = prepare(UnaryOperator.identity(), 43, 20).get(0).candidates();
        List<Candidate> second = prepare(UnaryOperator.identity(), 43, 20).get(0).candidates();
        assertEquals(first, second);
        List<Candidate> other =
                prepare(AllGatherMatmulBuilder::keepGathered, 43, 20).get(0).candidates();
        assertNotEquals(first, other);
    }

    @Test
    void theCallersCutIsKept() {
        Found found = prepare(builder -> builder.chunkRows(5), 44, 21).get(0);
        assertEquals(5, found.chunkRows());
        assertTrue(found.candidates().stream().allMatch(c -> c.chunksPerSource() == 9));
    }

    @Test
    void oneRankAndNoRowsAreSequential() {
        assertEquals(Algorithm.SEQUENTIAL, prepare(UnaryOperator.identity(), 9).get(0).algorithm());
        assertEquals(
                Algorithm.SEQUENTIAL, prepare(UnaryOperator.identity(), 0, 0).get(0).algorithm());
    }

    @Test
    void anOperatorPlannedLikeAnotherHasItsCutAndItsLanes() {
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.FP32, 24, 8);
        Shards shards = Shards.of(45, 22);
        Ranks.run(
                2,
                fabric -> {
                    try (AllGatherMatmul model =
                                    AllGatherMatmul.on(fabric)
                                            .a(shards, DType.FP32)
                                            .b(b)
                                            .engine(ENGINE)
                                            .algorithm(Algorithm.BIDIRECTIONAL_RING)
                                            .commWorkers(3)
                                            .chunkRows(7)
                                            .prepare();
                            AllGatherMatmul like =
                                    AllGatherMatmul.on(fabric)
                                            .a(shards, DType.FP32)
                                            .b(b)
                                            .engine(ENGINE)
                                            .like(model.plan())
                                            .keepGathered()
                                            .prepare()) {
                        assertEquals(model.plan().chunks(), like.plan().chunks());
                        assertEquals(model.plan().algorithm(), like.plan().algorithm());
                        assertEquals(
                                model.plan().steps().get(0).lanes(),
                                like.plan().steps().get(0).lanes());
                        AllGatherMatmulBuilder other =
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.of(44, 23), DType.FP32)
                                        .b(b)
                                        .like(model.plan());
                        assertThrows(IllegalArgumentException.class, other::prepare);
                    }
                });
    }
}
