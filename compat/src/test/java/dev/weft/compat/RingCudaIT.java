package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.compat.Fgcc.Path;
import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.World;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The ring tutorial and FGCC on a real GPU, which several ranks share. */
@Tag("gpu")
class RingCudaIT {

    private static final Duration DEADLINE = Duration.ofSeconds(20);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** One rank's matrices on the device. */
    static final class Bench implements AutoCloseable {

        private final List<DeviceBuffer> owned = new ArrayList<>();
        private final GpuStream stream = GpuStream.create();

        DeviceMatrix matrix(DType type, long rows, long cols) {
            owned.add(DeviceBuffer.allocate(DeviceMatrix.alignedBytes(type, rows, cols)));
            return DeviceMatrix.in(owned.getLast(), type, rows, cols);
        }

        DeviceMatrix copy(Matrix host) {
            DeviceMatrix device = matrix(host.dtype(), host.rows(), host.cols());
            device.upload(host, stream);
            return device;
        }

        Matrix host(DeviceMatrix device, Arena arena) {
            Matrix host = Matrix.allocate(arena, device.dtype(), device.rows(), device.cols());
            device.download(host, stream);
            return host;
        }

        @Override
        public void close() {
            owned.forEach(DeviceBuffer::close);
            stream.close();
        }
    }

    /** Beyond 16 ranks on one GPU nothing travels; shapes and bits are those of the ring. */
    @Test
    void manyRanksOfOneGpuReadInPlace() {
        int ranks = 32;
        FgccConfig config = FgccConfig.DEFAULT.withLnc(2).withSharedResult();
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, DEADLINE)) {
            FgccProblem problem =
                    FgccProblem.create(arena, ranks, 64, 256, 2048, DType.BF16, DType.BF16, 33);
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        try (Bench bench = new Bench()) {
                            DeviceMatrix lhs = bench.copy(problem.lhs(rank));
                            DeviceMatrix rhs = bench.copy(problem.rhs(rank));
                            try (Fgcc<DeviceMatrix> prepared =
                                    Fgcc.prepare(
                                            Place.on(gpu),
                                            fabric,
                                            64,
                                            256,
                                            DType.BF16,
                                            rhs,
                                            ReplicaGroups.consecutive(1, ranks),
                                            false,
                                            config)) {
                                assertEquals(
                                        0, FgccProblem.plan(prepared.operator()).lanes().size());
                                for (int call = 0; call < 3; call++) {
                                    FgccResult<DeviceMatrix> result = prepared.call(lhs);
                                    assertArrayEquals(
                                            new long[] {32, 2, 2, 16, 64}, result.shape());
                                    problem.assertClose(bench.host(result.product(), arena), rank);
                                    int peer = (rank + 1) % ranks;
                                    problem.assertClose(bench.host(result.peer(peer), arena), peer);
                                }
                                fabric.barrier();
                            }
                        }
                    });
        }
    }

    @ParameterizedTest
    @CsvSource({"1, 1, 128", "2, 1, 128", "4, 2, 128", "3, 2, 13", "8, 1, 64", "16, 2, 128"})
    void everySlotIsASourcesRowsTimesOwnColumns(int ranks, int lnc, long m) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, DEADLINE)) {
            FgccProblem problem =
                    FgccProblem.create(
                            arena, ranks, m, 512, 64L * ranks, DType.BF16, DType.BF16, ranks);
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        try (Bench bench = new Bench();
                                RingAllGatherMatmul<DeviceMatrix> ring =
                                        RingAllGatherMatmul.prepare(
                                                Place.on(gpu),
                                                fabric,
                                                m,
                                                DType.BF16,
                                                bench.copy(problem.rhs(rank)),
                                                lnc)) {
                            DeviceMatrix rows = bench.copy(problem.lhs(rank));
                            Matrix first = bench.host(ring.call(rows), arena);
                            problem.assertClose(first, rank);
                            for (View view : View.values()) {
                                assertTrue(ring.operator().callInPlace(view).elapsedNs() > 0);
                            }
                            for (int call = 0; call < 4; call++) {
                                Matrix again = bench.host(ring.call(rows), arena);
                                assertEquals(-1, first.firstDifferentRow(again));
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    @ParameterizedTest
    @CsvSource({
        "256, 1024, 1024, 4, 2, false", "256, 1024, 1024, 4, 2, true",
        "256, 1024, 1024, 4, 1, true", "512, 2048, 2048, 4, 2, false",
        "512, 1024, 1024, 16, 2, false"
    })
    void theSourcesShapesByBothPaths(long m, long k, long n, int ranks, int lnc, boolean hbm) {
        FgccConfig config = FgccConfig.DEFAULT.withLnc(lnc);
        int channels = config.channels(ranks);
        long loc = m / lnc / channels;
        long[] shape =
                hbm
                        ? new long[] {ranks, channels, lnc, loc, n / ranks}
                        : new long[] {ranks, lnc, channels, loc, n / ranks};
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, DEADLINE)) {
            FgccProblem problem =
                    FgccProblem.create(arena, ranks, m, k, n, DType.BF16, DType.BF16, 31);
            world.run(
                    fabric -> {
                        gpu.bind();
                        int rank = fabric.rank();
                        try (Bench bench = new Bench()) {
                            DeviceMatrix lhs = bench.copy(problem.lhs(rank));
                            DeviceMatrix rhs = bench.copy(problem.rhs(rank));
                            int peer = (rank + 1) % ranks;
                            Matrix product;
                            try (FgccResult<DeviceMatrix> once =
                                    Fgcc.allgatherComputeMatmul(
                                            Place.on(gpu),
                                            fabric,
                                            lhs,
                                            rhs,
                                            ranks,
                                            1,
                                            hbm,
                                            config)) {
                                assertEquals(hbm ? Path.HBM : Path.SBUF, once.path());
                                assertArrayEquals(shape, once.shape());
                                product = bench.host(once.product(), arena);
                                problem.assertClose(product, rank);
                                problem.assertClose(bench.host(once.peer(peer), arena), peer);
                                fabric.barrier();
                            }
                            try (Fgcc<DeviceMatrix> prepared =
                                    Fgcc.prepare(
                                            Place.on(gpu),
                                            fabric,
                                            m,
                                            k,
                                            DType.BF16,
                                            rhs,
                                            ReplicaGroups.consecutive(1, ranks),
                                            hbm,
                                            config.withSharedResult())) {
                                // More than four ranks of one GPU read rows in place.
                                assertEquals(
                                        ranks > 4 ? 0 : channels,
                                        FgccProblem.plan(prepared.operator()).lanes().size());
                                for (int call = 0; call < 3; call++) {
                                    FgccResult<DeviceMatrix> result = prepared.call(lhs);
                                    DeviceMatrix again = result.product();
                                    assertEquals(
                                            -1,
                                            product.firstDifferentRow(bench.host(again, arena)));
                                    DeviceMatrix theirs = result.peer(peer);
                                    problem.assertClose(bench.host(theirs, arena), peer);
                                }
                                fabric.barrier();
                            }
                        }
                    });
        }
    }
}
