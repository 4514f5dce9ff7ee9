package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.fabric.World;
import dev.weft.plan.Chunk;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A reduction that Weft does not have, on ranks that share a GPU. */
@Tag("gpu")
class OwnReductionIT {

    private static final Duration DEADLINE = Duration.ofSeconds(10);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** Owners get the sums of all, and add them one by one, in the order of ranks, in place. */
    private static final class OneByOne implements ReductionWriter {

        @Override
        public String label() {
            return "one-by-one";
        }

        @Override
        public List<StepPlan> plans(ReductionRequest request) {
            if (request.all()) {
                throw new IllegalArgumentException("an all-reduce: expected a reduce-scatter");
            }
            StepPlanBuilder plan = new StepPlanBuilder(request.placement());
            int ranks = request.ranks();
            List<Part> sums = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                sums.add(buffer(plan, rank, "sums", request));
                for (Chunk chunk : request.allChunks()) {
                    Part a = request.rows(plan.a(rank), chunk);
                    Part into = request.rows(sums.get(rank), chunk);
                    plan.multiply(rank, 0, a, plan.b(rank), into, false);
                }
            }
            for (int owner = 0; owner < ranks; owner++) {
                Part total = null;
                for (int rank = 0; rank < ranks; rank++) {
                    Part next =
                            rank == owner
                                    ? sums.get(rank)
                                    : buffer(plan, owner, "from " + rank, request);
                    for (Chunk chunk : request.allChunks()) {
                        if (chunk.source() == owner) {
                            Part arrived = request.rows(next, chunk);
                            if (rank != owner) {
                                plan.copy(rank, 0, request.rows(sums.get(rank), chunk), arrived);
                            }
                            if (rank > 0) {
                                Part before = request.rows(total, chunk);
                                plan.add(owner, 0, List.of(before, arrived), before);
                            }
                        }
                    }
                    total = total == null ? next : total;
                }
                for (Chunk chunk : request.allChunks()) {
                    if (chunk.source() == owner) {
                        Part c = plan.c(owner).rows(chunk.firstRow(), chunk.rows());
                        plan.add(owner, 0, List.of(request.rows(total, chunk)), c);
                    }
                }
            }
            return plan.build();
        }

        private static Part buffer(
                StepPlanBuilder plan, int rank, String name, ReductionRequest request) {
            long rows = request.rows().totalRows();
            return plan.buffer(rank, name, Buffer.Kind.SUMS, rows, request.cols());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void itGivesTheBitsOfItsOrder(int ranks) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, DEADLINE)) {
            SumProblem p = problem(arena, ranks);
            Matrix whole = p.byRank(gpu, arena);
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        try (CudaMatmulReduce op =
                                p.describe(CudaMatmulReduce.on(fabric, gpu, false), rank)
                                        .algorithm(new OneByOne())
                                        .chunkRows(100)
                                        .prepare()) {
                            assertEquals("one-by-one", op.plan().name());
                            assertEquals(ranks, op.plan().steps().size());
                            for (int call = 0; call < 4; call++) {
                                fabric.barrier();
                                SumProblem.callPoisoned(gpu, op, p.aOf(rank));
                                SumProblem.assertSame(
                                        p.rowsFor(whole, rank, false),
                                        SumProblem.download(op.product(0), arena),
                                        "result of rank " + rank);
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    /** Weft's own lanes through host memory know no adding on the way. */
    @Test
    void itIsRefusedThroughHostMemory() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(2, DEADLINE)) {
            SumProblem p = problem(arena, 2);
            world.run(
                    fabric -> {
                        gpu.bind();
                        CudaMatmulReduceBuilder staged =
                                p.describe(CudaMatmulReduce.on(fabric, gpu, false), fabric.rank())
                                        .staged()
                                        .algorithm(new OneByOne());
                        String refusal =
                                assertThrows(IllegalArgumentException.class, staged::prepare)
                                        .getMessage();
                        assertTrue(refusal.contains("do not reach each other"), refusal);
                    });
        }
    }

    private static SumProblem problem(Arena arena, int ranks) {
        return SumProblem.random(
                arena,
                Shards.even(700, ranks),
                Shards.even(48L * ranks, ranks),
                136,
                DType.FP16,
                DType.FP32,
                false);
    }
}
