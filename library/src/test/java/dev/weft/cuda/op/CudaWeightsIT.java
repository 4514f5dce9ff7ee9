package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.World;
import dev.weft.ffi.DeviceMemory;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A B on the GPU that several operators use. */
@Tag("gpu")
class CudaWeightsIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);
    private static final long K = 64;
    private static final long N = 136;
    private static final int OWN = 100;

    private final Arena arena = Arena.ofShared();
    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    @AfterEach
    void freeMatrices() {
        arena.close();
    }

    private Matrix random(DType type, long rows, long cols, int seed) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        DeviceProblem.fill(matrix, new Random(seed));
        return matrix;
    }

    private Matrix b(boolean transposed, int seed) {
        return random(DType.FP16, transposed ? N : K, transposed ? K : N, seed);
    }

    /** An operator of weights, or of the matrix if those are null. */
    private interface Kind {
        CudaOperator prepare(CudaWeights weights, Matrix b, boolean transposed);
    }

    private List<Kind> kinds() {
        return List.of(this::gather, this::widerGather, this::sum);
    }

    private static CudaAllGatherMatmulBuilder with(
            CudaAllGatherMatmulBuilder builder, CudaWeights weights, Matrix b, boolean transposed) {
        return (weights == null ? builder.b(b, transposed) : builder.b(weights)).deadline(DEADLINE);
    }

    private CudaAllGatherMatmul gather(CudaWeights weights, Matrix b, boolean transposed) {
        return with(CudaAllGatherMatmul.withHostPeers(gpu, 0), weights, b, transposed)
                .a(Shards.of(40, 24), DType.FP16)
                .output(DType.FP16)
                .algorithm(Algorithm.MESH_PULL)
                .prepare();
    }

    private CudaAllGatherMatmul widerGather(CudaWeights weights, Matrix b, boolean transposed) {
        return with(CudaAllGatherMatmul.withHostPeers(gpu, 1), weights, b, transposed)
                .a(Shards.of(200, 157, 300), DType.FP16)
                .output(DType.FP32)
                .epilogue(Epilogue.none().gelu())
                .algorithm(Algorithm.SEQUENTIAL)
                .prepare();
    }

    /** The second rank of a chain. */
    private CudaMatmulReduce sum(CudaWeights weights, Matrix b, boolean transposed) {
        CudaMatmulReduceBuilder builder = CudaMatmulReduce.withHostPeers(gpu, 1, true);
        return (weights == null ? builder.b(b, transposed) : builder.b(weights))
                .a(Shards.of(40, 24), Shards.of(16, K), DType.FP16)
                .output(DType.FP32)
                .algorithm(Reduction.CHAIN)
                .deadline(DEADLINE)
                .prepare();
    }

    /** What comes from peers, the same in all calls. */
    private void placePeers(CudaOperator op) {
        if (op instanceof CudaMatmulReduce sum) {
            Matrix to = sum.incoming(0, Reduction.PARTIAL).orElseThrow();
            to.copyFrom(random(DType.FP32, to.rows(), to.cols(), 0));
        } else if (op instanceof CudaAllGatherMatmul gather) {
            for (int r = 0; r < op.mostRows().ranks(); r++) {
                if (r != op.rank()) {
                    Matrix to = gather.peerShard(r);
                    to.copyFrom(random(DType.FP16, to.rows(), to.cols(), r));
                }
            }
        }
    }

    private Matrix ownShard(CudaOperator op) {
        DeviceMatrix place = op.nextShard();
        return random(place.dtype(), place.rows(), place.cols(), OWN);
    }

    private Matrix called(CudaOperator op, Matrix shard) {
        try (GpuStream stream = GpuStream.create();
                DeviceCheck check = new DeviceCheck(gpu)) {
            op.nextShard().upload(shard, stream);
            check.poison(op.product(0));
            op.call(op.nextShard());
            return SumProblem.download(op.product(0), arena);
        }
    }

    private Matrix called(CudaOperator op) {
        placePeers(op);
        return called(op, ownShard(op));
    }

    private Matrix expected(Kind kind, Matrix b, boolean transposed) {
        try (CudaOperator anew = kind.prepare(null, b, transposed)) {
            return called(anew);
        }
    }

    /** A copy on the GPU whose rows are not aligned, and which nobody may use afterwards. */
    private void unaligned(Matrix values, Consumer<DeviceMatrix> use) {
        long elementBytes = values.dtype().bytes();
        long pitch = values.cols() + 1;
        try (GpuStream stream = GpuStream.create();
                DeviceCheck check = new DeviceCheck(gpu);
                DeviceBuffer buffer =
                        DeviceBuffer.allocate((values.rows() * pitch + 1) * elementBytes)) {
            DeviceMatrix there =
                    new DeviceMatrix(
                            buffer.address() + elementBytes,
                            values.dtype(),
                            values.rows(),
                            values.cols(),
                            pitch);
            assertFalse(there.isAligned());
            there.upload(values, stream);
            use.accept(there);
            check.poison(there);
        }
    }

    private CudaWeights copy(Matrix b, boolean transposed, boolean fromDevice) {
        List<CudaWeights> made = new ArrayList<>();
        if (fromDevice) {
            unaligned(b, there -> made.add(CudaWeights.copyOf(gpu, there, transposed)));
        } else {
            made.add(CudaWeights.copyOf(gpu, b, transposed));
        }
        return made.getFirst();
    }

    private void replace(CudaWeights weights, Matrix b, boolean fromDevice) {
        if (fromDevice) {
            unaligned(b, weights::replace);
        } else {
            weights.replace(b);
        }
    }

    /** Before and after another matrix has replaced the first, and that again the other. */
    @ParameterizedTest
    @CsvSource({"false, false", "false, true", "true, false", "true, true"})
    void operatorsOfAnyKindUseOneCopy(boolean transposed, boolean fromDevice) {
        Matrix first = b(transposed, 1);
        Matrix second = b(transposed, 2);
        CudaWeights weights = copy(first, transposed, fromDevice);
        List<CudaOperator> operators = new ArrayList<>();
        try {
            for (Kind kind : kinds()) {
                operators.add(kind.prepare(weights, null, transposed));
            }
            assertProducts(operators, first, transposed);
            replace(weights, second, fromDevice);
            assertProducts(operators, second, transposed);
            replace(weights, first, fromDevice);
            assertProducts(operators, first, transposed);
            assertRefused(
                    IllegalStateException.class,
                    "weights that 3 operators use: close those first",
                    weights::close);
        } finally {
            operators.forEach(Operator::close);
            weights.close();
            weights.close();
        }
    }

    private void assertProducts(List<CudaOperator> operators, Matrix b, boolean transposed) {
        for (int i = 0; i < operators.size(); i++) {
            Matrix expected = expected(kinds().get(i), b, transposed);
            SumProblem.assertSame(expected, called(operators.get(i)), "operator " + i);
        }
    }

    @Test
    void moreOperatorsTakeNoMoreMemoryForB() {
        long columns = 16_384;
        Matrix b = Matrix.allocate(arena, DType.BF16, 4096, columns);
        DeviceProblem.fill(b.rows(0, 1), new Random(1));
        Matrix rows = random(DType.BF16, 32, 4096, OWN);
        try (CudaWeights weights = CudaWeights.copyOf(gpu, b, false);
                CudaAllGatherMatmul first = small(weights, 16)) {
            assertEquals(2 * 4096 * columns, weights.bytes());
            long before = DeviceMemory.free();
            try (CudaAllGatherMatmul second = small(weights, 32);
                    CudaAllGatherMatmul third = small(weights, 16)) {
                long taken = before - DeviceMemory.free();
                assertTrue(
                        taken < weights.bytes() / 2,
                        () -> taken + " bytes beside weights of " + weights.bytes());
                Matrix expected = called(first, rows.rows(0, 16));
                SumProblem.assertSame(
                        expected, called(second, rows).rows(0, 16), "the first of more rows");
                SumProblem.assertSame(
                        expected, called(third, rows.rows(0, 16)), "the same product");
            }
        }
    }

    private CudaAllGatherMatmul small(CudaWeights weights, long rows) {
        return CudaAllGatherMatmul.withHostPeers(gpu, 0)
                .a(Shards.of(rows), DType.BF16)
                .b(weights)
                .algorithm(Algorithm.MESH_PULL)
                .deadline(DEADLINE)
                .prepare();
    }

    @Test
    void aLaunchOfAGraphReadsWhatHasReplacedThem() {
        Matrix first = b(false, 1);
        Matrix second = b(false, 2);
        try (CudaWeights weights = CudaWeights.copyOf(gpu, first, false);
                CudaAllGatherMatmul op = gather(weights, null, false);
                DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            placePeers(op);
            DeviceMatrix shard = DeviceProblem.upload(ownShard(op), stream);
            op.call(shard);
            try (GpuStream.Graph graph =
                    stream.capture(() -> op.start(shard, stream, View.PIPELINED))) {
                for (Matrix each : List.of(first, second, first)) {
                    Matrix expected = expected(this::gather, each, false);
                    weights.replace(each);
                    check.poison(op.product(0));
                    graph.launch(stream);
                    stream.synchronize();
                    op.checkReplays();
                    Matrix found = SumProblem.download(op.product(0), arena);
                    SumProblem.assertSame(expected, found, "a launch");
                }
            }
        }
    }

    /** A rank that prepares waits for its peer, and meanwhile its weights must stay. */
    @Test
    void weightsStayWhileAnOperatorIsPrepared() {
        Matrix b = b(false, 1);
        try (World world = World.threads(2, DEADLINE);
                CudaWeights weights = CudaWeights.copyOf(gpu, b, false)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        if (fabric.rank() == 1) {
                            assertRefused(
                                    IllegalStateException.class,
                                    "weights of an operator that is being prepared: replace them afterwards",
                                    () -> replaceUntilRefused(weights, b));
                            assertRefused(
                                    IllegalStateException.class,
                                    "weights that 1 operators use: close those first",
                                    weights::close);
                        }
                        try (CudaWeights own = CudaWeights.copyOf(gpu, b, false)) {
                            CudaAllGatherMatmul.on(fabric, gpu)
                                    .a(Shards.of(40, 24), DType.FP16)
                                    .b(fabric.rank() == 0 ? weights : own)
                                    .algorithm(Algorithm.MESH_PULL)
                                    .prepare()
                                    .close();
                        }
                    });
        }
    }

    private static void replaceUntilRefused(CudaWeights weights, Matrix b) {
        long startNs = System.nanoTime();
        while (System.nanoTime() - startNs < DEADLINE.toNanos()) {
            weights.replace(b);
        }
    }

    /** Peers read each other's rows of B where the weights are. Each rank replaces its own. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void ranksThatReachEachOtherReadThem(boolean transposed) {
        SumProblem first = sums(transposed, 1);
        SumProblem second = sums(transposed, 2);
        List<SumProblem> problems = List.of(first, second, first);
        List<Matrix> wholes =
                problems.stream().map(p -> p.product(gpu, 0, 2 * K, p.out(), arena)).toList();
        try (World world = World.threads(2, DEADLINE)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        Matrix own = first.b(first.begin(rank), first.end(rank));
                        try (CudaWeights weights = CudaWeights.copyOf(gpu, own, transposed);
                                CudaMatmulReduce scatter =
                                        sum(CudaMatmulReduce.on(fabric, gpu, false), weights, first)
                                                .algorithm(Reduction.DIRECT)
                                                .prepare();
                                CudaMatmulReduce all =
                                        sum(CudaMatmulReduce.on(fabric, gpu, true), weights, first)
                                                .algorithm(Reduction.DIRECT)
                                                .prepare()) {
                            for (int i = 0; i < problems.size(); i++) {
                                SumProblem p = problems.get(i);
                                weights.replace(p.b(p.begin(rank), p.end(rank)));
                                for (CudaMatmulReduce op : List.of(scatter, all)) {
                                    SumProblem.callPoisoned(gpu, op, p.aOf(rank));
                                    SumProblem.assertSame(
                                            p.rowsFor(wholes.get(i), rank, op == all),
                                            SumProblem.download(op.product(0), arena),
                                            "result of rank " + rank);
                                }
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    private SumProblem sums(boolean transposed, int seed) {
        Matrix b = random(DType.FP16, transposed ? N : 2 * K, transposed ? 2 * K : N, seed);
        return new SumProblem(
                Shards.of(70, 58),
                Shards.of(K + 16, K - 16),
                random(DType.FP16, 128, 2 * K, OWN),
                b,
                transposed,
                DType.FP32);
    }

    private static CudaMatmulReduceBuilder sum(
            CudaMatmulReduceBuilder builder, CudaWeights weights, SumProblem p) {
        return builder.a(p.rows(), p.kParts(), p.a().dtype())
                .b(weights)
                .output(p.out())
                .deadline(DEADLINE);
    }

    /** Ranks of one process give the same object; one of them replaces it for all. */
    @Test
    void ranksOfOneProcessShareOneObject() {
        Matrix first = b(false, 1);
        Matrix second = b(false, 2);
        Shards shards = Shards.of(300, 212);
        Matrix a = random(DType.FP16, shards.totalRows(), K, OWN);
        List<Matrix> expected = new ArrayList<>();
        for (Matrix b : List.of(first, second)) {
            SumProblem p = new SumProblem(shards, Shards.of(K), a, b, false, DType.FP16);
            expected.add(p.product(gpu, 0, K, DType.FP16, arena));
        }
        try (World world = World.threads(2, DEADLINE);
                CudaWeights weights = CudaWeights.copyOf(gpu, first, false)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        Matrix shard =
                                a.rows(shards.firstRow(fabric.rank()), shards.rows(fabric.rank()));
                        try (CudaAllGatherMatmul op =
                                CudaAllGatherMatmul.on(fabric, gpu)
                                        .a(shards, DType.FP16)
                                        .b(weights)
                                        .output(DType.FP16)
                                        .algorithm(Algorithm.MESH_PULL)
                                        .deadline(DEADLINE)
                                        .prepare()) {
                            SumProblem.assertSame(
                                    expected.get(0), called(op, shard), "the first product");
                            fabric.barrier();
                            if (fabric.rank() == 1) {
                                weights.replace(second);
                            }
                            fabric.barrier();
                            SumProblem.assertSame(
                                    expected.get(1), called(op, shard), "the second product");
                            fabric.barrier();
                        }
                    });
        }
    }

    @ParameterizedTest
    @CsvSource({"ROW, false", "TENSOR, true", "BLOCK, false", "BLOCK, true"})
    void operatorsOf8BitsShareThemWithTheirScales(Scaling scaling, boolean transposed) {
        assumeTrue(gpu.capability() / 10 == 9, () -> gpu + " has no kernel for 8 bits");
        ScaledMatrix first = scaledB(transposed, scaling, 1);
        ScaledMatrix second = scaledB(transposed, scaling, 2);
        List<Long> rows = List.of(64L, 300L);
        try (CudaWeights weights = CudaWeights.copyOf(gpu, first, transposed, scaling);
                CudaAllGatherMatmul small = scaled(rows.get(0), scaling).b(weights).prepare();
                CudaAllGatherMatmul large = scaled(rows.get(1), scaling).b(weights).prepare()) {
            List<CudaAllGatherMatmul> operators = List.of(small, large);
            for (ScaledMatrix each : List.of(first, second, first)) {
                weights.replace(each);
                for (int i = 0; i < operators.size(); i++) {
                    Matrix a = random(DType.BF16, rows.get(i), 320, OWN);
                    Matrix shard = ScaledMatrix.rowsOf(arena, a, DType.E4M3, scaling);
                    try (CudaAllGatherMatmul anew =
                            scaled(rows.get(i), scaling).b(each, transposed).prepare()) {
                        SumProblem.assertSame(
                                called(anew, shard),
                                called(operators.get(i), shard),
                                "operator " + i);
                    }
                }
            }
            Scaling other = scaling == Scaling.BLOCK ? Scaling.ROW : Scaling.BLOCK;
            assertRefused(
                    IllegalArgumentException.class,
                    "weights %s for A with scales by %s, in an operator with A with scales by %s: expected the same"
                            .formatted(first.values().describe(), scaling.label(), other.label()),
                    () -> scaled(64, other).b(weights).prepare());
            assertRefused(
                    IllegalArgumentException.class,
                    "weights %s without scales: expected a ScaledMatrix"
                            .formatted(first.values().describe()),
                    () -> weights.replace(second.values()));
        }
    }

    private ScaledMatrix scaledB(boolean transposed, Scaling scaling, int seed) {
        Matrix b = random(DType.BF16, transposed ? 200 : 320, transposed ? 320 : 200, seed);
        return ScaledMatrix.ofB(arena, b, transposed, DType.E4M3, scaling);
    }

    private CudaAllGatherMatmulBuilder scaled(long rows, Scaling scaling) {
        return CudaAllGatherMatmul.withHostPeers(gpu, 0)
                .scaledA(Shards.of(rows), DType.E4M3, scaling)
                .output(DType.BF16)
                .algorithm(Algorithm.MESH_PULL)
                .deadline(DEADLINE);
    }

    @Test
    void whatDoesNotFitIsRefused() {
        Matrix b = b(false, 1);
        Matrix expected = expected(this::gather, b, false);
        CudaWeights weights = CudaWeights.copyOf(gpu, b, false);
        try (CudaAllGatherMatmul op = gather(weights, null, false)) {
            assertRefused(
                    UnsupportedOperationException.class,
                    "B number 0 is weights that other operators may use: replace it by"
                            + " CudaWeights.replace",
                    () -> op.replaceB(0, op.nextShard()));
            assertRefused(
                    IllegalArgumentException.class,
                    "the B of these weights is to be replaced by [136, 64] fp16: expected [64, 136]"
                            + " fp16, as it was given",
                    () -> weights.replace(b(true, 2)));
            assertRefused(
                    IllegalArgumentException.class,
                    "the B of these weights is to be replaced by [64, 136] bf16: expected [64, 136]"
                            + " fp16, as it was given",
                    () -> weights.replace(random(DType.BF16, K, N, 2)));
            placePeers(op);
            Operator.PendingCall<DeviceMatrix> call = op.start(op.nextShard());
            assertRefused(
                    IllegalStateException.class,
                    "a call is under way: await it first",
                    () -> weights.replace(b(false, 2)));
            call.await();
            SumProblem.assertSame(expected, called(op), "the product after refusals");
            assertRefused(
                    IllegalStateException.class,
                    "weights that 1 operators use: close those first",
                    weights::close);
        }
        weights.close();
        assertRefused(
                IllegalStateException.class, "the weights are closed", () -> weights.replace(b));
        assertRefused(
                IllegalStateException.class,
                "the weights are closed",
                () -> gather(weights, null, false));
    }

    private static void assertRefused(
            Class<? extends RuntimeException> type, String message, Runnable refused) {
        assertEquals(message, assertThrows(type, refused::run).getMessage());
    }
}
