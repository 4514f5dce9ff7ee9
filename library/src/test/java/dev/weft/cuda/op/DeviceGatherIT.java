package dev.weft.cuda.op;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.World;
import dev.weft.op.AllGather;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/** Gathers without a product on a real GPU: every byte, whatever the type and the width. */
@Tag("gpu")
class DeviceGatherIT {

    private static final Duration DEADLINE = Duration.ofSeconds(5);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** Any bytes, also those that are no numbers. */
    static Matrix bytes(Arena arena, DType type, long rows, long cols, long seed) {
        Matrix matrix = Matrix.allocate(arena, type, rows, cols);
        Random random = new Random(seed);
        for (long i = 0; i < matrix.data().byteSize(); i++) {
            matrix.data().set(JAVA_BYTE, i, (byte) random.nextInt());
        }
        return matrix;
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            mode = Mode.EXCLUDE,
            names = {"DIRECT"})
    void everyByteArrivesByRowsAndByColumns(Algorithm algorithm) {
        for (DType type : DType.values()) {
            for (int ranks : new int[] {1, 2, 3, 4, 8}) {
                for (long cols : new long[] {1, 7, 33, 512}) {
                    rows(algorithm, type, ranks, cols, false);
                    columns(algorithm, type, ranks, cols, 0);
                }
            }
        }
    }

    private void rows(Algorithm algorithm, DType type, int ranks, long cols, boolean staged) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, DEADLINE)) {
            long[] counts = new long[ranks];
            java.util.Arrays.setAll(counts, r -> r % 3 == 1 ? 0 : 5 + 30L * r);
            Shards shards = Shards.of(counts);
            Matrix[] inputs = new Matrix[3];
            for (int call = 0; call < inputs.length; call++) {
                inputs[call] = bytes(arena, type, shards.totalRows(), cols, call);
            }
            world.run(
                    fabric -> {
                        gpu.bind();
                        CudaAllGatherMatmulBuilder builder = CudaAllGatherMatmul.on(fabric, gpu);
                        if (staged) {
                            builder.staged();
                        }
                        try (AllGather<DeviceMatrix> gather =
                                        AllGather.rows(builder, shards, cols, type, algorithm);
                                GpuStream stream = GpuStream.create()) {
                            for (Matrix input : inputs) {
                                int rank = fabric.rank();
                                gather.nextShard()
                                        .upload(
                                                input.rows(
                                                        shards.firstRow(rank), shards.rows(rank)),
                                                stream);
                                assertBytes(input, gather.call(gather.nextShard()), stream);
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    private void columns(Algorithm algorithm, DType type, int ranks, long cols, long chunkRows) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, DEADLINE)) {
            long rows = 61;
            Matrix[] inputs = new Matrix[3];
            for (int call = 0; call < inputs.length; call++) {
                inputs[call] = bytes(arena, type, rows, cols * ranks, call);
            }
            world.run(
                    fabric -> {
                        gpu.bind();
                        try (AllGather<DeviceMatrix> gather =
                                        AllGather.columns(
                                                CudaAllGatherMatmul.on(fabric, gpu),
                                                rows,
                                                cols,
                                                type,
                                                algorithm,
                                                chunkRows);
                                GpuStream stream = GpuStream.create()) {
                            for (Matrix input : inputs) {
                                Matrix part = input.block(0, rows, cols * fabric.rank(), cols);
                                DeviceMatrix shard = DeviceProblem.upload(part, stream);
                                assertBytes(input, gather.call(shard), stream);
                            }
                            fabric.barrier();
                        }
                    });
        }
    }

    private static void assertBytes(Matrix expected, DeviceMatrix gathered, GpuStream stream) {
        try (Arena arena = Arena.ofConfined()) {
            assertEquals(expected.describe(), gathered.describe());
            Matrix host =
                    Matrix.allocate(arena, expected.dtype(), expected.rows(), expected.cols());
            gathered.download(host, stream);
            assertTrue(expected.bitwiseEquals(host), expected.describe());
        }
    }

    @Test
    void tilesOfFewRowsTravelOneByOne() {
        columns(Algorithm.MESH_PUSH, DType.BF16, 4, 512, 16);
        columns(Algorithm.RING, DType.FP32, 3, 33, 4);
    }

    @Test
    void rowsAreGatheredThroughHostMemoryToo() {
        rows(Algorithm.MESH_PULL, DType.FP32, 3, 33, true);
        rows(Algorithm.RING, DType.BF16, 4, 7, true);
    }
}
