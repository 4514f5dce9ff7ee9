package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator;
import dev.weft.op.Result;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Calls of fewer rows than an operator on a GPU was prepared for. */
@Tag("gpu")
class CudaRowsIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);
    private static final Shards MOST = Shards.of(300, 0, 157, 64);
    private static final int CALLS = 8;

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** All rows, none, one of each rank, and any numbers. */
    private static List<Shards> calls(Shards most, long seed) {
        Random random = new Random(seed);
        List<Shards> calls = new ArrayList<>();
        for (int call = 0; call < CALLS; call++) {
            int kind = call < 4 ? call : random.nextInt(2, 6);
            long[] rows = new long[most.ranks()];
            Arrays.setAll(
                    rows,
                    r ->
                            switch (kind) {
                                case 0 -> most.rows(r);
                                case 1 -> 0;
                                case 2 -> Math.min(1, most.rows(r));
                                default -> random.nextLong(most.rows(r) + 1);
                            });
            calls.add(Shards.of(rows));
        }
        calls.add(most);
        return calls;
    }

    /** The first rows of each shard, without gaps. */
    private static Matrix first(Matrix all, Shards most, Shards shards, Arena arena) {
        Matrix rows = Matrix.allocate(arena, all.dtype(), shards.totalRows(), all.cols());
        for (int r = 0; r < most.ranks(); r++) {
            rows.rows(shards.firstRow(r), shards.rows(r))
                    .copyFrom(all.rows(most.firstRow(r), shards.rows(r)));
        }
        return rows;
    }

    private Matrix product(DeviceProblem p, Arena arena) {
        Shards k = Shards.even(p.a().cols(), 1);
        SumProblem whole = new SumProblem(p.shards(), k, p.a(), p.b(), p.transposed(), p.out());
        return whole.product(gpu, 0, p.a().cols(), p.out(), arena);
    }

    private static void assertRows(Matrix expected, DeviceMatrix found, String what, Arena arena) {
        assertEquals(expected.rows(), found.rows(), what);
        if (expected.rows() > 0) {
            SumProblem.assertSame(expected, SumProblem.download(found, arena), what);
        }
    }

    /** Calls of one rank, every other one with A that has to be copied to its place. */
    private void check(
            DeviceProblem p, Operator<DeviceMatrix> op, int rank, Matrix c, boolean keeps) {
        try (Arena arena = Arena.ofShared();
                GpuStream stream = GpuStream.create();
                DeviceCheck check = new DeviceCheck(gpu)) {
            int number = 0;
            for (Shards shards : calls(p.shards(), 11)) {
                String what = op.plan().name() + ", rank " + rank + " of a call of " + shards;
                Matrix own = p.shard(rank).rows(0, shards.rows(rank));
                check.poison(((CudaOperator) op).product(0));
                Result<DeviceMatrix> result;
                if (number++ % 2 == 0) {
                    op.nextShard(shards).upload(own, stream);
                    result = op.callInPlace(View.PIPELINED, shards);
                } else {
                    result = op.call(DeviceProblem.upload(own, stream), shards);
                }
                Matrix expected = first(c, p.shards(), shards, arena);
                assertRows(expected, result.product(0), what, arena);
                assertEquals(keeps, result.gathered().isPresent(), what);
                if (keeps) {
                    Matrix gathered = first(p.a(), p.shards(), shards, arena);
                    assertRows(gathered, result.gathered().orElseThrow(), what, arena);
                }
                assertTrue(result.timeline().elapsedNs() > 0, what);
            }
        }
    }

    private interface Request {
        CudaAllGatherMatmulBuilder on(CudaAllGatherMatmulBuilder builder);
    }

    private void checkRanks(DeviceProblem p, boolean keeps, Request request) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(p.shards().ranks(), DEADLINE)) {
            Matrix c = product(p, arena);
            world.run(
                    fabric -> {
                        gpu.bind();
                        CudaAllGatherMatmulBuilder builder =
                                p.describe(CudaAllGatherMatmul.on(fabric, gpu));
                        try (CudaAllGatherMatmul op = request.on(builder).prepare()) {
                            check(p, op, fabric.rank(), c, keeps);
                            fabric.barrier();
                        }
                    });
        }
    }

    private static DeviceProblem problem(Arena arena) {
        return DeviceProblem.random(arena, MOST, 264, 392, DType.BF16, DType.FP32, false);
    }

    @ParameterizedTest
    @EnumSource(value = Algorithm.class, mode = EnumSource.Mode.EXCLUDE, names = "AUTO")
    void gathersOfRanksThatReachEachOther(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem p = problem(arena);
            boolean keeps = algorithm != Algorithm.DIRECT;
            checkRanks(p, keeps, builder -> builder.algorithm(algorithm));
            checkRanks(p, keeps, builder -> builder.algorithm(algorithm).chunkRows(50));
        }
    }

    @Test
    void aRingOfTwoBuffers() {
        try (Arena arena = Arena.ofShared()) {
            checkRanks(problem(arena), false, builder -> builder.pingPong(1));
        }
    }

    @Test
    void gathersThroughHostMemory() {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem p = problem(arena);
            checkRanks(p, true, builder -> builder.staged());
            checkRanks(p, true, builder -> builder.staged().chunkRows(50));
        }
    }

    @ParameterizedTest
    @CsvSource({"0, mesh-pull", "2, mesh-pull", "3, sequential", "1, mesh-pull"})
    void gathersFromHostMemory(int rank, String algorithm) {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem p = problem(arena);
            Matrix c = product(p, arena);
            try (CudaAllGatherMatmul op =
                    p.describe(CudaAllGatherMatmul.withHostPeers(gpu, rank))
                            .algorithm(Algorithm.of(algorithm))
                            .deadline(DEADLINE)
                            .prepare()) {
                checkHostPeers(p, op, rank, c);
            }
        }
    }

    /** One row of tiles, in as few copies as can be. */
    @ParameterizedTest
    @ValueSource(ints = {16, 40, 128})
    void fewRowsFromHostMemory(int most) {
        try (Arena arena = Arena.ofShared()) {
            Shards shards = Shards.of(most / 2, most / 4, most / 4);
            DeviceProblem p =
                    DeviceProblem.random(arena, shards, 256, 512, DType.FP16, DType.FP16, true);
            Matrix c = product(p, arena);
            try (CudaAllGatherMatmul op =
                    p.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0))
                            .deadline(DEADLINE)
                            .prepare()) {
                checkHostPeers(p, op, 0, c);
            }
        }
    }

    private void checkHostPeers(DeviceProblem p, CudaAllGatherMatmul op, int rank, Matrix c) {
        try (Arena arena = Arena.ofShared();
                GpuStream stream = GpuStream.create()) {
            for (Shards shards : calls(p.shards(), 3)) {
                for (int r = 0; r < shards.ranks(); r++) {
                    op.peerShard(r, shards).copyFrom(p.shard(r).rows(0, shards.rows(r)));
                }
                op.nextShard(shards).upload(p.shard(rank).rows(0, shards.rows(rank)), stream);
                Result<DeviceMatrix> result = op.callInPlace(View.PIPELINED, shards);
                Matrix expected = first(c, p.shards(), shards, arena);
                assertRows(expected, result.product(0), "a call of " + shards, arena);
            }
        }
    }

    @Test
    void cublasStaysWithinItsBound() {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(MOST.ranks(), DEADLINE)) {
            DeviceProblem p = problem(arena);
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (GpuStream stream = GpuStream.create();
                                CudaAllGatherMatmul op =
                                        p.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                                .engine("cublas")
                                                .algorithm(Algorithm.MESH_PULL)
                                                .prepare()) {
                            for (Shards shards : calls(MOST, 5)) {
                                int rank = fabric.rank();
                                Matrix own = p.shard(rank).rows(0, shards.rows(rank));
                                op.nextShard(shards).upload(own, stream);
                                DeviceMatrix c = op.callInPlace(View.PIPELINED, shards).product(0);
                                Matrix a = first(p.a(), MOST, shards, arena);
                                assertEquals(a.rows(), c.rows());
                                if (a.rows() > 0) {
                                    Matrix found = SumProblem.download(c, arena);
                                    assertTrue(
                                            new Float64Oracle(a, p.b(), p.transposed())
                                                    .check(found, 0, a.rows() - 1)
                                                    .withinBound(),
                                            () -> "a call of " + shards);
                                }
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    /** The second call is queued before the first has ended. */
    @Test
    void twoCallsOfOtherRowsAtOnce() {
        try (Arena arena = Arena.ofShared();
                GpuStream stream = GpuStream.create()) {
            DeviceProblem p = problem(arena);
            Matrix c = product(p, arena);
            Shards few = Shards.of(3, 0, 0, 1);
            Matrix a = first(p.a(), MOST, few, arena);
            try (CudaAllGatherMatmul op =
                    p.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0))
                            .deadline(DEADLINE)
                            .prepare()) {
                for (int r = 1; r < MOST.ranks(); r++) {
                    op.peerShard(r).copyFrom(p.shard(r));
                }
                // Where the first call's own rows would be, which nobody reads.
                op.peerShard(3, few).copyFrom(a.rows(3, 1));
                DeviceMatrix all = DeviceProblem.upload(p.shard(0), stream);
                DeviceMatrix own = DeviceProblem.upload(a.rows(0, 3), stream);
                DeviceMatrix kept = DeviceProblem.like(op.product(0));
                for (int i = 0; i < 20; i++) {
                    var one = op.start(all, MOST, stream, View.PIPELINED);
                    kept.copyFrom(op.product(0), stream);
                    var two = op.start(own, few, stream, View.PIPELINED);
                    one.await();
                    two.await();
                    assertRows(first(c, MOST, few, arena), op.product(0), "the second", arena);
                    assertRows(c, kept, "the first", arena);
                }
            }
        }
    }

    private void checkSums(
            SumProblem p, Reduction reduction, boolean all, boolean staged, int rows) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(p.ranks(), DEADLINE)) {
            Matrix whole =
                    reduction.order() == Reduction.Order.WHOLE
                            ? p.product(gpu, 0, p.kParts().totalRows(), p.out(), arena)
                            : p.byRank(gpu, arena);
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        CudaMatmulReduceBuilder builder =
                                p.describe(CudaMatmulReduce.on(fabric, gpu, all), rank)
                                        .algorithm(reduction);
                        builder = rows > 0 ? builder.chunkRows(rows) : builder;
                        try (CudaMatmulReduce op =
                                (staged ? builder.staged() : builder).prepare()) {
                            checkSums(p, op, rank, all, whole);
                            fabric.barrier();
                        }
                    });
        }
    }

    private void checkSums(SumProblem p, CudaMatmulReduce op, int rank, boolean all, Matrix whole) {
        try (Arena arena = Arena.ofShared();
                GpuStream stream = GpuStream.create();
                DeviceCheck check = new DeviceCheck(gpu)) {
            for (Shards shards : calls(p.rows(), 17)) {
                Matrix a = first(p.aOf(rank), p.rows(), shards, arena);
                op.nextShard(shards).upload(a, stream);
                check.poison(op.product(0));
                DeviceMatrix found = op.callInPlace(View.PIPELINED, shards).product(0);
                Matrix sums = first(whole, p.rows(), shards, arena);
                Matrix expected = all ? sums : sums.rows(shards.firstRow(rank), shards.rows(rank));
                String what = op.plan().name() + ", rank " + rank + " of a call of " + shards;
                assertRows(expected, found, what, arena);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "DIRECT, false",
        "CHAIN, false",
        "MESH_PUSH, false",
        "SEQUENTIAL, false",
        "CHAIN, true",
        "MESH_PUSH, true",
        "SEQUENTIAL, true"
    })
    void sums(Reduction reduction, boolean staged) {
        try (Arena arena = Arena.ofShared()) {
            Shards kParts = Shards.of(48, 32, 0, 64);
            SumProblem p =
                    SumProblem.random(arena, MOST, kParts, 392, DType.FP16, DType.FP32, true);
            for (boolean all : new boolean[] {false, true}) {
                checkSums(p, reduction, all, staged, 0);
                checkSums(p, reduction, all, staged, 50);
            }
        }
    }

    /** One rank of a chain, whose peers are memory: rows there are those of the call. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3})
    void aChainThroughHostMemory(int rank) {
        try (Arena arena = Arena.ofShared();
                GpuStream stream = GpuStream.create()) {
            Shards rows = Shards.of(300, 90, 157, 64);
            Shards kParts = Shards.of(48, 32, 16, 64);
            SumProblem p =
                    SumProblem.random(arena, rows, kParts, 392, DType.FP16, DType.FP16, true);
            Matrix before = p.product(gpu, 0, p.begin(rank), DType.FP32, arena);
            Matrix after = p.product(gpu, 0, p.end(rank), DType.FP32, arena);
            Matrix whole = p.product(gpu, 0, kParts.totalRows(), DType.FP32, arena);
            Matrix rounded = p.product(gpu, 0, kParts.totalRows(), DType.FP16, arena);
            for (boolean all : new boolean[] {false, true}) {
                try (CudaMatmulReduce op =
                        p.describe(CudaMatmulReduce.withHostPeers(gpu, rank, all), rank)
                                .algorithm(Reduction.CHAIN)
                                .deadline(DEADLINE)
                                .prepare()) {
                    for (Shards shards : calls(rows, 23)) {
                        fillFirst(op.incoming(0, Reduction.PARTIAL), before, rows, shards, arena);
                        fillFirst(op.incoming(0, Reduction.WHOLE), whole, rows, shards, arena);
                        Matrix a = first(p.aOf(rank), rows, shards, arena);
                        op.nextShard(shards).upload(a, stream);
                        DeviceMatrix found = op.callInPlace(View.PIPELINED, shards).product(0);
                        Matrix sums = first(rounded, rows, shards, arena);
                        Matrix expected =
                                all ? sums : sums.rows(shards.firstRow(rank), shards.rows(rank));
                        String what = "rank " + rank + " of a call of " + shards;
                        assertRows(expected, found, what, arena);
                        Matrix sent = first(after, rows, shards, arena);
                        op.outgoing(0, Reduction.PARTIAL)
                                .filter(to -> sent.rows() > 0 && rank < 3)
                                .ifPresent(
                                        to ->
                                                SumProblem.assertSame(
                                                        sent, to.rows(0, sent.rows()), what));
                    }
                }
            }
        }
    }

    private static void fillFirst(
            Optional<Matrix> to, Matrix all, Shards most, Shards shards, Arena arena) {
        Matrix rows = first(all, most, shards, arena);
        to.ifPresent(
                memory -> {
                    long count = Math.min(memory.rows(), rows.rows());
                    memory.rows(0, count).copyFrom(rows.rows(0, count));
                });
    }

    /** Bias, activation and a residual of the call's rows. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void epilogues(boolean staged) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(MOST.ranks(), DEADLINE)) {
            Shards kParts = Shards.of(48, 32, 0, 64);
            SumProblem p =
                    SumProblem.random(arena, MOST, kParts, 392, DType.FP16, DType.FP16, true);
            Matrix added = Matrix.allocate(arena, DType.FP16, p.a().rows(), 392);
            DeviceProblem.fill(added, new Random(1));
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        DeviceMatrix[] residual = new DeviceMatrix[1];
                        try (GpuStream stream = GpuStream.create()) {
                            Matrix own = added.rows(MOST.firstRow(rank), MOST.rows(rank));
                            DeviceMatrix all = DeviceProblem.upload(own, stream);
                            residual[0] = all;
                            CudaMatmulReduceBuilder builder =
                                    p.describe(CudaMatmulReduce.on(fabric, gpu, false), rank)
                                            .algorithm(Reduction.CHAIN)
                                            .epilogue(
                                                    Epilogue.none()
                                                            .gelu()
                                                            .residual(() -> residual[0]));
                            try (CudaMatmulReduce op =
                                    (staged ? builder.staged() : builder).prepare()) {
                                Matrix whole = null;
                                for (Shards shards : calls(MOST, 29)) {
                                    residual[0] = all.rows(0, shards.rows(rank));
                                    Matrix a = first(p.aOf(rank), MOST, shards, arena);
                                    op.nextShard(shards).upload(a, stream);
                                    DeviceMatrix found =
                                            op.callInPlace(View.PIPELINED, shards).product(0);
                                    assertEquals(shards.rows(rank), found.rows());
                                    if (whole == null) {
                                        whole = SumProblem.download(found, arena);
                                    }
                                    Matrix expected = whole.rows(0, shards.rows(rank));
                                    assertRows(expected, found, "a call of " + shards, arena);
                                }
                                fabric.barrier();
                            }
                        }
                    });
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void ranksThatDisagreeAreTold(boolean staged) {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem p = DeviceProblem.random(arena, Shards.even(64, 2), 64, 64, DType.BF16);
            try (World world = World.threads(2, DEADLINE)) {
                RuntimeException error =
                        assertThrows(
                                RuntimeException.class,
                                () ->
                                        world.run(
                                                fabric -> {
                                                    gpu.bind();
                                                    CudaAllGatherMatmulBuilder builder =
                                                            p.describe(
                                                                    CudaAllGatherMatmul.on(
                                                                            fabric, gpu));
                                                    try (CudaAllGatherMatmul op =
                                                            (staged ? builder.staged() : builder)
                                                                    .prepare()) {
                                                        Shards own =
                                                                Shards.of(4, 4 + fabric.rank());
                                                        op.call(op.nextShard(own), own);
                                                    }
                                                }));
                String all = error + " " + Arrays.toString(error.getSuppressed());
                assertTrue(all.contains("8 rows") && all.contains("9 rows"), all);
            }
        }
    }

    @Test
    void moreRowsThanPreparedAreRefused() {
        try (Arena arena = Arena.ofShared()) {
            DeviceProblem p = DeviceProblem.random(arena, Shards.even(64, 2), 64, 64, DType.BF16);
            try (CudaAllGatherMatmul op =
                    p.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0)).prepare()) {
                List<Shards> wrong = List.of(Shards.of(33, 0), Shards.of(1), Shards.of(1, 33));
                for (Shards shards : wrong) {
                    IllegalArgumentException error =
                            assertThrows(
                                    IllegalArgumentException.class, () -> op.nextShard(shards));
                    assertTrue(error.getMessage().contains("32,32"), error.getMessage());
                }
                assertEquals(
                        List.of(0L, 7L, 32L),
                        IntStream.of(0, 7, 32)
                                .mapToObj(rows -> op.nextShard(Shards.of(rows, 1)).rows())
                                .toList());
            }
        }
    }
}
