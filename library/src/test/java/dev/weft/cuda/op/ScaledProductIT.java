package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.fabric.World;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Loss;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Operands of 8 bits on a real GPU of Hopper's kind. */
@Tag("gpu")
class ScaledProductIT {

    private static final Duration DEADLINE = Duration.ofSeconds(3);

    /** What the tensor cores' sums of 8-bit products may lose of |A| x |B|. */
    private static final double LOST = 0x1p-11;

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
        assumeTrue(gpu.capability() / 10 == 9, () -> gpu + " has no kernel for 8 bits");
    }

    /** Rows of all ranks as they travel, and B. */
    private record Problem(
            long k, Scaling scaling, Matrix rows, ScaledMatrix b, boolean transposed, DType out) {

        static Problem of(
                Arena arena, long m, long k, long n, Scaling scaling, DType bType, DType out) {
            boolean transposed = m % 2 == 0;
            Matrix a = Matrix.allocate(arena, DType.BF16, m, k);
            new NormalData(m, 0).fill(a);
            for (long row = 0; row < m; row++) {
                // Rows of very different sizes, as scales are for.
                a.set(row, 0, a.get(row, 0) * (1 << row % 9));
            }
            Matrix b = Matrix.allocate(arena, DType.BF16, transposed ? n : k, transposed ? k : n);
            new NormalData(m, 1).fill(b);
            return new Problem(
                    k,
                    scaling,
                    ScaledMatrix.rowsOf(arena, a, DType.E4M3, scaling),
                    ScaledMatrix.ofB(arena, b, transposed, bType, scaling),
                    transposed,
                    out);
        }

        CudaAllGatherMatmulBuilder describe(CudaAllGatherMatmulBuilder builder, Shards shards) {
            return builder.scaledA(shards, DType.E4M3, scaling)
                    .b(b, transposed)
                    .output(out)
                    .deadline(DEADLINE);
        }

        Matrix shard(Shards shards, int rank) {
            return rows.rows(shards.firstRow(rank), shards.rows(rank));
        }

        void requireWithinBound(Matrix c, Arena arena) {
            Matrix a = ScaledMatrix.inRows(rows, k, scaling).dequantize(arena);
            Float64Oracle oracle =
                    new Float64Oracle(a, b.dequantize(arena), transposed, Loss.ofShare(LOST));
            long[] some =
                    java.util.stream.LongStream.of(0, c.rows() / 2, c.rows() - 1)
                            .distinct()
                            .toArray();
            assertTrue(oracle.check(c, some).withinBound(), oracle.check(c, some).toString());
        }
    }

    /** The product of the last of three calls, each into poisoned memory. */
    private Matrix called(
            CudaAllGatherMatmul op, Problem problem, Shards shards, int rank, Arena arena) {
        try (DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            for (int call = 0; call < 3; call++) {
                op.nextShard().upload(problem.shard(shards, rank), stream);
                check.poison(op.product(0));
                op.call(op.nextShard());
            }
            DeviceMatrix c = op.product(0);
            Matrix host = Matrix.allocate(arena, c.dtype(), c.rows(), c.cols());
            c.download(host, stream);
            op.gathered()
                    .ifPresent(
                            all -> {
                                Matrix here =
                                        Matrix.allocate(arena, all.dtype(), all.rows(), all.cols());
                                all.download(here, stream);
                                assertTrue(here.bitwiseEquals(problem.rows()));
                            });
            return host;
        }
    }

    private Matrix withHostPeers(
            Problem problem, Shards shards, CudaAllGatherMatmulBuilder builder, Arena arena) {
        try (CudaAllGatherMatmul op = problem.describe(builder, shards).prepare()) {
            for (int r = 1; r < shards.ranks(); r++) {
                if (shards.rows(r) > 0) {
                    op.peerShard(r).copyFrom(problem.shard(shards, r));
                }
            }
            return called(op, problem, shards, 0, arena);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "ROW, E4M3, BF16, 512, 256, 384",
        "BLOCK, E4M3, FP32, 512, 1024, 384",
        "TENSOR, E5M2, FP16, 700, 1000, 130",
        "BLOCK, E5M2, BF16, 701, 77, 33",
        "ROW, E4M3, FP32, 5, 1, 1",
        "BLOCK, E4M3, FP16, 2048, 640, 1300",
        "ROW, E4M3, BF16, 4096, 128, 8064",
    })
    void bitsDoNotDependOnRanksChunksOrArrival(
            Scaling scaling, DType bType, DType out, long m, long k, long n) {
        try (Arena arena = Arena.ofShared()) {
            Problem problem = Problem.of(arena, m, k, n, scaling, bType, out);
            Matrix whole =
                    withHostPeers(
                            problem,
                            Shards.of(m),
                            CudaAllGatherMatmul.withHostPeers(gpu, 0),
                            arena);
            problem.requireWithinBound(whole, arena);
            long some = m / 3;
            for (Shards shards : new Shards[] {Shards.even(m, 4), Shards.of(some, 0, m - some)}) {
                for (CudaAllGatherMatmulBuilder builder :
                        new CudaAllGatherMatmulBuilder[] {
                            CudaAllGatherMatmul.withHostPeers(gpu, 0),
                            CudaAllGatherMatmul.withHostPeers(gpu, 0).chunkRows(60).commWorkers(2),
                            CudaAllGatherMatmul.withHostPeers(gpu, 0).chunkCols(192),
                            CudaAllGatherMatmul.withHostPeers(gpu, 0).waitForSummary(),
                            CudaAllGatherMatmul.withHostPeers(gpu, 0)
                                    .algorithm(Algorithm.SEQUENTIAL)
                        }) {
                    Matrix c = withHostPeers(problem, shards, builder, arena);
                    assertTrue(c.bitwiseEquals(whole), shards + " differs from one rank");
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Algorithm.class)
    void ranksOnOneGpuGiveTheSame(Algorithm algorithm) {
        try (Arena arena = Arena.ofShared()) {
            Problem problem =
                    Problem.of(arena, 900, 640, 520, Scaling.BLOCK, DType.E4M3, DType.BF16);
            Matrix whole =
                    withHostPeers(
                            problem,
                            Shards.of(900),
                            CudaAllGatherMatmul.withHostPeers(gpu, 0),
                            arena);
            Shards shards = Shards.of(300, 557, 43);
            try (World world = World.threads(3, DEADLINE)) {
                world.run(
                        fabric -> {
                            gpu.bind();
                            try (CudaAllGatherMatmul op =
                                    problem.describe(CudaAllGatherMatmul.on(fabric, gpu), shards)
                                            .algorithm(algorithm)
                                            .prepare()) {
                                for (int call = 0; call < 3; call++) {
                                    try (GpuStream stream = GpuStream.create()) {
                                        op.nextShard()
                                                .upload(
                                                        problem.shard(shards, fabric.rank()),
                                                        stream);
                                    }
                                    fabric.barrier();
                                    op.callInPlace(View.PIPELINED);
                                    fabric.barrier();
                                }
                                DeviceMatrix c = op.product(0);
                                try (GpuStream stream = GpuStream.create();
                                        Arena own = Arena.ofConfined()) {
                                    Matrix host =
                                            Matrix.allocate(own, c.dtype(), c.rows(), c.cols());
                                    c.download(host, stream);
                                    assertTrue(host.bitwiseEquals(whole), algorithm.label());
                                }
                                fabric.barrier();
                            }
                        });
            }
        }
    }

    @Test
    void whatNoKernelMultipliesIsRefused() {
        try (Arena arena = Arena.ofShared()) {
            Problem problem = Problem.of(arena, 64, 256, 64, Scaling.ROW, DType.E4M3, DType.BF16);
            Shards one = Shards.of(64);
            assertRefused(
                    "A of e4m3 with engine cublas: expected engine gated",
                    problem.describe(
                            CudaAllGatherMatmul.withHostPeers(gpu, 0).engine("cublas"), one));
            Matrix plain = Matrix.allocate(arena, DType.BF16, 256, 64);
            ScaledMatrix blocks = ScaledMatrix.ofB(arena, plain, false, DType.E4M3, Scaling.BLOCK);
            assertRefused(
                    "B with a scale for 128 of K x 128 columns, A with scales by row: on the GPU"
                            + " expected scales of whole columns",
                    CudaAllGatherMatmul.withHostPeers(gpu, 0)
                            .scaledA(one, DType.E4M3, Scaling.ROW)
                            .b(blocks, false));
            System.setProperty(KernelFamily.PROPERTY, "mma");
            try {
                assertRefused(
                        "A of e4m3 on %s with kernel mma_gemm.cu: expected compute capability 9.0 and kernel hopper"
                                .formatted(gpu),
                        problem.describe(CudaAllGatherMatmul.withHostPeers(gpu, 0), one));
            } finally {
                System.clearProperty(KernelFamily.PROPERTY);
            }
        }
    }

    private static void assertRefused(String message, CudaAllGatherMatmulBuilder builder) {
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, builder::prepare).getMessage());
    }
}
