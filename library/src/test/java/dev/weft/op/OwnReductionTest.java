package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.World;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Chunk;
import dev.weft.plan.PlanException;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Buffer.Kind;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Operators sum as somebody else's plans say, once they are proved. */
class OwnReductionTest {

    private static final Shards ROWS = Shards.of(5, 0, 7);
    private static final Shards K_PARTS = Shards.of(4, 9, 3);
    private static final int N = 6;

    /**
     * Every rank sends its sums to the owners of the rows, which add them from the last rank on.
     */
    private record Backwards(boolean forgets) implements ReductionWriter {

        @Override
        public String label() {
            return "backwards";
        }

        @Override
        public List<StepPlan> plans(ReductionRequest request) {
            int ranks = request.ranks();
            StepPlanBuilder plan = new StepPlanBuilder(request.placement());
            List<Part> sums = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                sums.add(buffer(plan, rank, request));
                for (Chunk chunk : request.allChunks()) {
                    Part a = request.rows(plan.a(rank), chunk);
                    Part into = request.rows(sums.get(rank), chunk);
                    plan.multiply(rank, 0, a, plan.b(rank), into, false);
                }
            }
            for (int owner = 0; owner < ranks; owner++) {
                List<Part> places = new ArrayList<>();
                for (int rank = ranks - 1; rank >= 0; rank--) {
                    places.add(rank == owner ? sums.get(rank) : buffer(plan, owner, request));
                }
                for (int rank = ranks - 1; rank >= 0; rank--) {
                    Part place = places.get(ranks - 1 - rank);
                    for (Chunk chunk : request.allChunks()) {
                        if (chunk.source() == owner && rank != owner) {
                            Part from = request.rows(sums.get(rank), chunk);
                            plan.copy(rank, 0, from, request.rows(place, chunk));
                        }
                    }
                }
                for (Chunk chunk : request.allChunks()) {
                    if (chunk.source() == owner && !(forgets && owner == 2)) {
                        List<Part> addends =
                                places.stream().map(place -> request.rows(place, chunk)).toList();
                        Part c = request.rowsOfC(plan.c(owner), chunk);
                        plan.add(owner, 0, addends, c);
                    }
                }
            }
            return plan.build();
        }

        private static Part buffer(StepPlanBuilder plan, int rank, ReductionRequest request) {
            long rows = request.rows().totalRows();
            return plan.buffer(rank, "sums", Kind.SUMS, rows, request.cols());
        }
    }

    private record Writer(Function<ReductionRequest, List<StepPlan>> writes)
            implements ReductionWriter {

        @Override
        public String label() {
            return "other";
        }

        @Override
        public List<StepPlan> plans(ReductionRequest request) {
            return writes.apply(request);
        }
    }

    private interface Use {
        void with(MatmulReduceBuilder<MatmulReduceScatter> builder, int rank, Matrix a, Matrix b);
    }

    private static void onThreads(Use use) {
        try (World world = World.threads(ROWS.ranks(), Duration.ofSeconds(20));
                Arena arena = Arena.ofShared()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, ROWS.totalRows(), K_PARTS.totalRows());
            Matrix b = Matrix.allocate(arena, DType.FP32, K_PARTS.totalRows(), N);
            new NormalData(7, 0).fill(a);
            new NormalData(7, 1).fill(b);
            world.run(
                    fabric -> {
                        int rank = fabric.rank();
                        long first = K_PARTS.firstRow(rank);
                        long count = K_PARTS.rows(rank);
                        use.with(
                                MatmulReduceScatter.on(fabric)
                                        .a(ROWS, K_PARTS, DType.FP32)
                                        .b(b.rows(first, count))
                                        .engine(Gemms.byName("scalar")),
                                rank,
                                a,
                                b);
                    });
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 1, 3})
    void bitsAreThoseOfItsOrder(long chunkRows) {
        onThreads(
                (builder, rank, a, b) -> {
                    if (chunkRows > 0) {
                        builder.chunkRows(chunkRows);
                    }
                    try (MatmulReduceScatter sums =
                            builder.algorithm(new Backwards(false)).prepare()) {
                        assertEquals("backwards", sums.plan().name());
                        assertEquals(ROWS.ranks(), sums.plan().steps().size());
                        Matrix own =
                                a.block(0, a.rows(), K_PARTS.firstRow(rank), K_PARTS.rows(rank));
                        for (int call = 0; call < 5; call++) {
                            assertBackwards(a, b, sums.call(own).product(), rank);
                        }
                    }
                });
    }

    private static void assertBackwards(Matrix a, Matrix b, Matrix c, int rank) {
        assertEquals(ROWS.rows(rank), c.rows());
        for (long row = 0; row < c.rows(); row++) {
            for (long col = 0; col < N; col++) {
                float sum = part(a, b, ROWS.firstRow(rank) + row, col, 2);
                sum += part(a, b, ROWS.firstRow(rank) + row, col, 1);
                sum += part(a, b, ROWS.firstRow(rank) + row, col, 0);
                assertEquals(sum, c.get(row, col));
            }
        }
    }

    private static float part(Matrix a, Matrix b, long row, long col, int rank) {
        float sum = 0;
        for (long i = 0; i < K_PARTS.rows(rank); i++) {
            long k = K_PARTS.firstRow(rank) + i;
            sum = Math.fma(a.get(row, k), b.get(k, col), sum);
        }
        return sum;
    }

    @Test
    void plansThatForgetSomethingAreRefusedOnEveryRank() {
        assertRefused(new Backwards(true), "algorithm 'backwards': rank 2: nothing writes rows");
    }

    @Test
    void aWriterThatReturnsTooFewPlansIsRefused() {
        ReductionWriter none = new Writer(request -> List.of());
        assertRefused(
                none, "algorithm 'other': plans() returned 0 plans: expected a plan for each");
    }

    @Test
    void aWriterThatFailsIsNamed() {
        ReductionWriter failing =
                new Writer(
                        request -> {
                            throw new IllegalStateException("no idea");
                        });
        assertRefused(failing, "algorithm 'other': plans() threw IllegalStateException: no idea (");
    }

    /** Rank 0 proves plans, and the others hear of it; all of them write plans. */
    private static void assertRefused(ReductionWriter writer, String reason) {
        onThreads(
                (builder, rank, a, b) -> {
                    RuntimeException refusal =
                            assertThrows(
                                    RuntimeException.class, builder.algorithm(writer)::prepare);
                    boolean heard = rank > 0 && refusal instanceof PeerFailedException;
                    assertTrue(heard || refusal instanceof PlanException, refusal.toString());
                    assertTrue(refusal.getMessage().contains(reason), refusal.getMessage());
                });
    }

    @Test
    void itSumsInNoOrderButItsOwn() {
        onThreads(
                (builder, rank, a, b) -> {
                    builder.algorithm(new Backwards(false)).order(Order.WHOLE);
                    RuntimeException refusal =
                            assertThrows(RuntimeException.class, builder::prepare);
                    if (rank == 0) {
                        assertTrue(
                                refusal.getMessage().contains("it sums in order own"),
                                refusal.getMessage());
                    }
                });
    }
}
