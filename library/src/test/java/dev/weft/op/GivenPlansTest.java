package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.World;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Plan;
import dev.weft.plan.PlanBuilder;
import dev.weft.plan.PlanException;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** Operators run plans of others, once they are proved. */
class GivenPlansTest {

    private static final Gemm ENGINE = Gemms.byName("scalar");
    private static final Shards SHARDS = Shards.of(5, 0, 7);
    private static final int K = 6;

    /** All rows go to rank 0, which hands them out: some are put, some are got there. */
    private static final class Star implements GatherWriter {

        @Override
        public String label() {
            return "star";
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            PlanBuilder plan = new PlanBuilder(label(), request, 1);
            int ranks = request.ranks();
            for (int rank = 1; rank < ranks; rank++) {
                plan.put(rank, 0, 0, rank);
                plan.get(rank, 0, 0, 0);
            }
            for (int rank = 1; rank < ranks; rank++) {
                for (int source = 1; source < ranks; source++) {
                    if (source != rank) {
                        plan.get(rank, 0, 0, source);
                    }
                }
            }
            return plan.build();
        }
    }

    private static void onThreads(
            UnaryOperator<AllGatherMatmulBuilder> describe, Use<AllGatherMatmulBuilder> use) {
        try (World world = World.threads(3, Duration.ofSeconds(20));
                Arena arena = Arena.ofShared()) {
            Matrix b = Matrix.allocate(arena, DType.FP32, K, 4);
            new NormalData(3, 1).fill(b);
            world.run(
                    fabric ->
                            use.with(
                                    describe.apply(
                                            AllGatherMatmul.on(fabric)
                                                    .a(SHARDS, DType.FP32)
                                                    .b(b)
                                                    .engine(ENGINE)),
                                    fabric.rank()));
        }
    }

    private interface Use<T> {
        void with(T builder, int rank);
    }

    private static void fill(Matrix shard, int rank) {
        new NormalData(7, rank).fill(shard);
    }

    @Test
    void theProductIsThatOfWeftsOwnPlans() {
        Matrix[] expected = new Matrix[3];
        try (Arena arena = Arena.ofShared()) {
            onThreads(
                    builder -> builder.algorithm(Algorithm.SEQUENTIAL),
                    (builder, rank) -> {
                        try (AllGatherMatmul sequential = builder.prepare()) {
                            Matrix shard = sequential.nextShard();
                            fill(shard, rank);
                            Matrix product = sequential.call(shard).product();
                            expected[rank] = Matrix.allocate(arena, DType.FP32, product.rows(), 4);
                            expected[rank].copyFrom(product);
                        }
                    });
            onThreads(
                    builder -> builder.algorithm(new Star()).chunkRows(2),
                    (builder, rank) -> {
                        try (AllGatherMatmul star = builder.prepare()) {
                            assertEquals("star", star.plan().name());
                            for (int call = 0; call < 5; call++) {
                                Matrix shard = star.nextShard();
                                fill(shard, rank);
                                assertTrue(
                                        star.call(shard).product().bitwiseEquals(expected[rank]));
                            }
                        }
                    });
        }
    }

    /** Each rank has its own columns of B, and ranks compare the plans of all. */
    @Test
    void ranksMayHaveDifferentNumbersOfColumns() {
        try (World world = World.threads(3, Duration.ofSeconds(20));
                Arena arena = Arena.ofShared()) {
            world.run(
                    fabric -> {
                        Matrix b = Matrix.allocate(arena, DType.FP32, K, 3 + fabric.rank());
                        new NormalData(3, fabric.rank()).fill(b);
                        try (AllGatherMatmul star =
                                AllGatherMatmul.on(fabric)
                                        .a(SHARDS, DType.FP32)
                                        .b(b)
                                        .engine(ENGINE)
                                        .algorithm(new Star())
                                        .prepare()) {
                            Matrix shard = star.nextShard();
                            fill(shard, fabric.rank());
                            assertEquals(b.cols(), star.call(shard).product().cols());
                        }
                    });
        }
    }

    /** Steps by hand, of which rank 1 forgets its last product. */
    private record Forgetful() implements GatherWriter {

        @Override
        public String label() {
            return "forgetful";
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            return Algorithm.RING.plans(request).stream()
                    .map(plan -> plan.rank() == 1 ? withoutLast(plan) : plan)
                    .toList();
        }

        private static StepPlan withoutLast(StepPlan plan) {
            List<Worker> workers = new ArrayList<>(plan.workers());
            Worker last = workers.removeLast();
            List<Step> steps = last.steps().subList(0, last.steps().size() - 1);
            workers.add(new Worker(last.kind(), steps));
            return new StepPlan(plan.rank(), plan.buffers(), workers);
        }
    }

    @Test
    void aPlanThatForgetsSomethingIsRefusedOnEveryRank() {
        onThreads(
                builder -> builder.algorithm(new Forgetful()),
                (builder, rank) -> {
                    Class<? extends RuntimeException> expected =
                            rank == 0 ? PlanException.class : PeerFailedException.class;
                    RuntimeException refusal = assertThrows(expected, builder::prepare);
                    assertTrue(
                            refusal.getMessage().contains("algorithm 'forgetful': rank 1"),
                            refusal.getMessage());
                });
    }

    /** Steps by hand that do not see to what is wanted beyond the product. */
    private record Plain() implements GatherWriter {

        @Override
        public String label() {
            return "plain";
        }

        @Override
        public List<StepPlan> plans(GatherRequest request) {
            return Algorithm.DIRECT.plans(
                    new GatherRequest(
                            request.chunks(), request.lanes(), request.hosts(), request.cols()));
        }
    }

    @Test
    void whatDoesNotGoWithThePlanIsRefused() {
        refuses(
                "plan plain has no buffer number 3 of all rows of A",
                builder -> builder.algorithm(new Plain()).keepGathered());
        refuses(
                "with ping-pong buffers and gathered A kept",
                builder -> builder.algorithm(Algorithm.pingPongRing()).keepGathered());
        refuses(
                "lane 0 of plan star both puts and gets",
                builder -> builder.algorithm(new Star()).waitForSummary());
        Chunks others = Chunks.byRows(Shards.of(5, 7), K, 2, 4);
        refuses(
                "expected shards of 5,0,7 rows x 6 columns",
                builder -> builder.like(new Plan(Algorithm.RING, others, 1, List.of())));
    }

    /** By some rank; the others hear of it, or find the same. */
    private static void refuses(String reason, UnaryOperator<AllGatherMatmulBuilder> describe) {
        onThreads(
                describe,
                (builder, rank) -> {
                    RuntimeException refusal =
                            assertThrows(RuntimeException.class, builder::prepare);
                    assertTrue(refusal.getMessage().contains(reason), refusal.getMessage());
                });
    }
}
