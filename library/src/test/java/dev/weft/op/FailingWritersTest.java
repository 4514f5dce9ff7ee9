package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.World;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.PlanBuilder;
import dev.weft.plan.PlanException;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import dev.weft.predict.MachineModel;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** A program's own algorithm that fails is named, with what it threw as the cause. */
class FailingWritersTest {

    /** Writes plans by a function of the request. */
    private record Own(Function<GatherRequest, List<StepPlan>> write) implements GatherWriter {

        @Override
        public String label() {
            return "own";
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            return write.apply(request);
        }
    }

    private static PlanBuilder builder(GatherRequest request, int lanes) {
        return new PlanBuilder("own", request, lanes);
    }

    private static List<StepPlan> endless(GatherRequest request) {
        return endless(request);
    }

    private static List<StepPlan> failing(Throwable thrown) {
        switch (thrown) {
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            default -> throw new AssertionError(thrown);
        }
    }

    @Test
    void whatItThrowsIsTheCause() {
        // Thrown by hand: what Java throws in code that runs often may have neither text nor line.
        for (Throwable thrown :
                List.of(
                        new IndexOutOfBoundsException("index 4"),
                        new NullPointerException("no chunk"),
                        new NoClassDefFoundError("Helper"))) {
            assertThrown(thrown.getClass(), request -> failing(thrown));
        }
        assertThrown(StackOverflowError.class, FailingWritersTest::endless);
        assertThrown(
                IllegalStateException.class,
                request ->
                        new java.util.AbstractList<>() {
                            @Override
                            public StepPlan get(int rank) {
                                throw new IllegalStateException("no plan");
                            }

                            @Override
                            public int size() {
                                return request.ranks();
                            }
                        });
    }

    @Test
    void whatIsNoPlanIsNamed() {
        assertNamed("plans() returned null: expected a plan for each of 2 ranks", request -> null);
        assertNamed(
                "plans().get(0) returned null: expected a plan",
                request -> Collections.nCopies(2, null));
        assertNamed(
                "plans() returned 1 plans: expected a plan for each of 2 ranks",
                request -> Algorithm.RING.plans(request).subList(0, 1));
        assertNamed(
                "2147483647 lanes on every rank: expected 0 to 65536",
                request -> builder(request, Integer.MAX_VALUE).build());
        assertNamed(
                "-2147483648 lanes on every rank: expected 0 to 65536",
                request -> builder(request, Integer.MIN_VALUE).build());
        assertNamed(
                "a transfer with rank 8: expected 0 to 1",
                request -> builder(request, 1).put(0, 0, 8, 0).build());
        assertNamed(
                "a transfer with lane 1: expected 0 to 0",
                request -> builder(request, 1).put(0, 1, 1, 0).build());
        assertNamed(
                "a transfer with source -1: expected 0 to 1",
                request -> builder(request, 1).get(0, 0, 1, -1).build());
        assertNamed(
                "a transfer with chunk 7: expected 0 to 3",
                request -> builder(request, 1).put(0, 0, 1, 0, 7).build());
    }

    /** A writer may say that a problem is not for it; that is no fault of the writer. */
    @Test
    void aRefusalStaysARefusal() {
        IllegalArgumentException refusal =
                failure(
                        request -> {
                            throw new IllegalArgumentException("2 ranks: expected 3 or more");
                        });
        assertFalse(refusal instanceof PlanException, refusal.toString());
        assertEquals("algorithm 'own': 2 ranks: expected 3 or more", refusal.getMessage());
    }

    private static void assertThrown(
            Class<? extends Throwable> cause, Function<GatherRequest, List<StepPlan>> write) {
        PlanException failure = assertInstanceOf(PlanException.class, failure(write));
        assertInstanceOf(cause, failure.getCause());
        String message = failure.getMessage();
        assertTrue(message.startsWith("algorithm 'own': plans()"), message);
        assertTrue(message.contains(" threw " + failure.getCause().getClass().getSimpleName()));
        assertTrue(message.matches("(?s).*\\(FailingWritersTest.java:\\d+\\)"), message);
        assertEquals(1, message.lines().count(), message);
    }

    private static void assertNamed(String fault, Function<GatherRequest, List<StepPlan>> write) {
        PlanException failure = assertInstanceOf(PlanException.class, failure(write));
        assertEquals("algorithm 'own': " + fault, failure.getMessage());
        assertNull(failure.getCause());
    }

    /** On every rank of an operator, and the same on a model. */
    private static IllegalArgumentException failure(Function<GatherRequest, List<StepPlan>> write) {
        Shards shards = Shards.even(16, 2);
        MachineModel machine = MachineModel.of("trn2");
        Chunks chunks = Chunks.byRows(shards, 4, 2, 2);
        IllegalArgumentException predicted =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> machine.predict(new Own(write), chunks, 1, DType.FP32, 4));
        try (World world = World.threads(2, Duration.ofSeconds(20));
                Arena arena = Arena.ofShared()) {
            Matrix b = Matrix.allocate(arena, DType.FP32, 4, 4);
            world.run(
                    fabric -> {
                        AllGatherMatmulBuilder operator =
                                AllGatherMatmul.on(fabric)
                                        .a(shards, DType.FP32)
                                        .b(b)
                                        .engine(Gemms.byName("scalar"))
                                        .chunkRows(2)
                                        .algorithm(new Own(write));
                        IllegalArgumentException prepared =
                                assertThrows(IllegalArgumentException.class, operator::prepare);
                        assertEquals(predicted.getMessage(), prepared.getMessage());
                    });
        }
        return predicted;
    }
}
