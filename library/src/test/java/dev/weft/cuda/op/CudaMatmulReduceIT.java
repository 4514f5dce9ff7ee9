package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.op.Epilogue;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sums over ranks on a real GPU, bit for bit: every algorithm, both peers, both kernels. */
@Tag("gpu")
class CudaMatmulReduceIT {

    private static final Duration DEADLINE = Duration.ofSeconds(3);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** One rank of a chain: what comes in is continued, and what goes out is the sum so far. */
    private void runChain(SumProblem p, int rank, boolean all, long chunkRows, Arena arena) {
        Matrix before = p.product(gpu, 0, p.begin(rank), DType.FP32, arena);
        Matrix after = p.product(gpu, 0, p.end(rank), DType.FP32, arena);
        long k = p.kParts().totalRows();
        Matrix whole = p.product(gpu, 0, k, DType.FP32, arena);
        Matrix expected = p.rowsFor(p.product(gpu, 0, k, p.out(), arena), rank, all);
        CudaMatmulReduceBuilder builder =
                p.describe(CudaMatmulReduce.withHostPeers(gpu, rank, all), rank)
                        .algorithm(Reduction.CHAIN)
                        .deadline(DEADLINE);
        if (chunkRows > 0) {
            builder.chunkRows(chunkRows);
        }
        try (CudaMatmulReduce op = builder.prepare()) {
            op.incoming(0, Reduction.PARTIAL).ifPresent(to -> to.copyFrom(before));
            op.incoming(0, Reduction.WHOLE).ifPresent(to -> to.copyFrom(whole.rows(0, to.rows())));
            for (int call = 0; call < 3; call++) {
                SumProblem.callPoisoned(gpu, op, p.aOf(rank));
                if (expected.rows() > 0) {
                    SumProblem.assertSame(
                            expected,
                            SumProblem.download(op.product(0), arena),
                            "result of rank " + rank);
                }
                op.outgoing(0, Reduction.PARTIAL)
                        .ifPresent(
                                sent -> SumProblem.assertSame(after, sent, "sums of rank " + rank));
                if (all || p.rows().ranks() == 1) {
                    op.outgoing(0, Reduction.WHOLE)
                            .ifPresent(
                                    sent ->
                                            SumProblem.assertSame(
                                                    whole.rows(0, sent.rows()),
                                                    sent,
                                                    "whole sums of rank " + rank));
                }
                op.callInPlace(View.COMM_ONLY);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "FP16, FP16, false, 512, 256, 384",
        "BF16, FP32, true, 1024, 512, 264",
        "BF16, BF16, false, 700, 1008, 1030",
        "FP16, FP32, false, 5, 64, 3",
        "FP16, FP16, true, 4096, 128, 4096",
    })
    void aChainGoesOnWhereTheRankBeforeStopped(
            DType in, DType out, boolean transposed, long m, long k, long n) {
        try (Arena arena = Arena.ofShared()) {
            for (int ranks : new int[] {1, 2, 4}) {
                Shards kParts = Shards.even(k / 16, ranks);
                SumProblem p =
                        SumProblem.random(
                                arena,
                                Shards.even(m, ranks),
                                Shards.of(
                                        java.util.stream.IntStream.range(0, ranks)
                                                .mapToLong(r -> 16 * kParts.rows(r))
                                                .toArray()),
                                n,
                                in,
                                out,
                                transposed);
                runChain(p, ranks - 1, false, 0, arena);
                runChain(p, ranks / 2, false, 0, arena);
                runChain(p, ranks - 1, true, 100, arena);
                runChain(p, 0, true, 0, arena);
            }
        }
    }

    @Test
    void unevenAndEmptyPartsAreSummed() {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p =
                    SumProblem.random(
                            arena,
                            Shards.of(400, 0, 599, 1),
                            Shards.of(0, 320, 16, 0),
                            392,
                            DType.BF16,
                            DType.BF16,
                            false);
            for (int rank = 0; rank < 4; rank++) {
                runChain(p, rank, false, 0, arena);
                runChain(p, rank, true, 150, arena);
            }
            for (boolean all : new boolean[] {false, true}) {
                runRanks(p, all, Reduction.DIRECT, arena);
                runRanks(p, all, Reduction.SEQUENTIAL, arena);
            }
        }
    }

    private void runMesh(SumProblem p, int rank, boolean all, Reduction reduction, Arena arena) {
        Matrix expected = p.rowsFor(p.byRank(gpu, arena), rank, all);
        SumProblem fp32 =
                new SumProblem(p.rows(), p.kParts(), p.a(), p.b(), p.transposed(), DType.FP32);
        Matrix whole = fp32.byRank(gpu, arena);
        Matrix own = p.product(gpu, p.begin(rank), p.end(rank), DType.FP32, arena);
        try (CudaMatmulReduce op =
                p.describe(CudaMatmulReduce.withHostPeers(gpu, rank, all), rank)
                        .algorithm(reduction)
                        .deadline(DEADLINE)
                        .prepare()) {
            for (int q = 0; q < p.ranks(); q++) {
                Matrix part = p.product(gpu, p.begin(q), p.end(q), DType.FP32, arena);
                op.incoming(0, Reduction.slotOf(q))
                        .ifPresent(to -> to.copyFrom(part.rows(0, to.rows())));
            }
            op.incoming(0, Reduction.WHOLE).ifPresent(to -> to.copyFrom(whole.rows(0, to.rows())));
            for (int call = 0; call < 3; call++) {
                SumProblem.callPoisoned(gpu, op, p.aOf(rank));
                SumProblem.assertSame(
                        expected,
                        SumProblem.download(op.product(0), arena),
                        "result of rank " + rank);
                Matrix sent = op.outgoing(0, Reduction.slotOf(rank)).orElseThrow();
                for (int owner = 0; owner < p.ranks(); owner++) {
                    long first = p.rows().firstRow(owner);
                    if (owner != rank && first + p.rows().rows(owner) <= sent.rows()) {
                        SumProblem.assertSame(
                                own.rows(first, p.rows().rows(owner)),
                                sent.rows(first, p.rows().rows(owner)),
                                "sums for rank " + owner);
                    }
                }
                op.callInPlace(View.COMPUTE_ONLY);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void partsOfHostPeersAreAddedInRankOrder(boolean all) {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p =
                    SumProblem.random(
                            arena,
                            Shards.of(600, 300, 257),
                            Shards.of(100, 77, 301),
                            520,
                            DType.FP16,
                            DType.FP16,
                            false);
            for (int rank = 0; rank < 3; rank++) {
                runMesh(p, rank, all, Reduction.MESH_PUSH, arena);
                runMesh(p, rank, all, Reduction.SEQUENTIAL, arena);
            }
        }
    }

    private void runRanks(SumProblem p, boolean all, Reduction reduction, Arena arena) {
        long k = p.kParts().totalRows();
        Matrix whole =
                reduction == Reduction.DIRECT
                        ? p.product(gpu, 0, k, p.out(), arena)
                        : p.byRank(gpu, arena);
        try (World world = World.threads(p.ranks(), DEADLINE)) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        try (CudaMatmulReduce op =
                                p.describe(CudaMatmulReduce.on(fabric, gpu, all), rank)
                                        .algorithm(reduction)
                                        .prepare()) {
                            for (int call = 0; call < 4; call++) {
                                fabric.barrier();
                                SumProblem.callPoisoned(gpu, op, p.aOf(rank));
                                Matrix expected = p.rowsFor(whole, rank, all);
                                if (expected.rows() > 0) {
                                    SumProblem.assertSame(
                                            expected,
                                            SumProblem.download(op.product(0), arena),
                                            "result of rank " + rank);
                                }
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 8})
    void ranksThatShareTheGpuGiveTheBitsOfOne(int ranks) {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p =
                    SumProblem.random(
                            arena,
                            Shards.even(1000, ranks),
                            Shards.even(48L * ranks, ranks),
                            392,
                            DType.FP16,
                            DType.FP16,
                            true);
            for (boolean all : new boolean[] {false, true}) {
                runRanks(p, all, Reduction.DIRECT, arena);
                runRanks(p, all, Reduction.SEQUENTIAL, arena);
            }
            long[] rows = {0, 999};
            assertTrue(
                    new Float64Oracle(p.a(), p.b(), true)
                            .check(p.product(gpu, 0, 48L * ranks, DType.FP32, arena), rows)
                            .withinBound());
        }
    }

    /** The epilogue of the whole sums, once for each algorithm, with the bits of the CPU's. */
    @Test
    void anEpilogueIsAppliedToWholeSums() {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p =
                    SumProblem.random(
                            arena,
                            Shards.of(300, 212),
                            Shards.of(64, 48),
                            264,
                            DType.BF16,
                            DType.BF16,
                            false);
            float[] bias = new float[264];
            for (int i = 0; i < bias.length; i++) {
                bias[i] = i / 16f - 8;
            }
            Epilogue epilogue = Epilogue.none().bias(bias).gelu();
            Matrix sums = p.product(gpu, 0, 112, DType.FP32, arena);
            Matrix expected = Matrix.allocate(arena, DType.BF16, 512, 264);
            epilogue.apply(List.of(sums), List.of(expected));
            try (CudaMatmulReduce op =
                    p.describe(CudaMatmulReduce.withHostPeers(gpu, 1, true), 1)
                            .epilogue(epilogue)
                            .prepare()) {
                op.incoming(0, Reduction.PARTIAL)
                        .orElseThrow()
                        .copyFrom(p.product(gpu, 0, 64, DType.FP32, arena));
                SumProblem.callPoisoned(gpu, op, p.aOf(1));
                SumProblem.assertSame(
                        expected, SumProblem.download(op.product(0), arena), "result of a chain");
            }
            try (World world = World.threads(2, DEADLINE)) {
                world.run(
                        fabric -> {
                            gpu.bind();
                            try (CudaMatmulReduce op =
                                    p.describe(
                                                    CudaMatmulReduce.on(fabric, gpu, true),
                                                    fabric.rank())
                                            .epilogue(epilogue)
                                            .prepare()) {
                                SumProblem.callPoisoned(gpu, op, p.aOf(fabric.rank()));
                                SumProblem.assertSame(
                                        expected,
                                        SumProblem.download(op.product(0), arena),
                                        "in place");
                                fabric.barrier();
                            }
                        });
            }
        }
    }

    @Test
    void theKernelForOlderCardsSumsToo() {
        String before = System.getProperty(KernelFamily.PROPERTY);
        System.setProperty(KernelFamily.PROPERTY, "mma");
        try {
            aChainGoesOnWhereTheRankBeforeStopped(DType.BF16, DType.BF16, false, 700, 1008, 1030);
            unevenAndEmptyPartsAreSummed();
        } finally {
            if (before == null) {
                System.clearProperty(KernelFamily.PROPERTY);
            } else {
                System.setProperty(KernelFamily.PROPERTY, before);
            }
        }
    }

    @Test
    void whatDoesNotFitIsRefusedWithItsValues() {
        try (Arena arena = Arena.ofShared()) {
            SumProblem p =
                    SumProblem.random(
                            arena,
                            Shards.even(64, 2),
                            Shards.of(40, 24),
                            64,
                            DType.FP16,
                            DType.FP16,
                            false);
            CudaMatmulReduceBuilder whole =
                    p.describe(CudaMatmulReduce.withHostPeers(gpu, 0, false), 0)
                            .order(Reduction.Order.WHOLE);
            String refusal =
                    assertThrows(IllegalArgumentException.class, whole::prepare).getMessage();
            assertTrue(refusal.contains("16 k at a time"), refusal);
            try (CudaMatmulReduce op =
                    p.describe(CudaMatmulReduce.withHostPeers(gpu, 0, false), 0).prepare()) {
                assertTrue(
                        List.of("mesh-push", "sequential").contains(op.plan().name()),
                        op.plan().name());
                assertEquals(2, op.candidates().size());
            }
            CudaMatmulReduceBuilder direct =
                    p.describe(CudaMatmulReduce.withHostPeers(gpu, 0, false), 0)
                            .algorithm(Reduction.DIRECT);
            assertThrows(IllegalArgumentException.class, direct::prepare);
        }
    }
}
