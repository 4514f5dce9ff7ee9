package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.World;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The SBUF-to-SBUF gathers on a real GPU, which several ranks share: byte for byte. */
@Tag("gpu")
class Sb2sbCudaIT {

    private static final Duration DEADLINE = Duration.ofSeconds(10);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** How to prepare one of the gathers. */
    @FunctionalInterface
    private interface Preparation {
        Sb2sb<DeviceMatrix> on(Fabric world, int tp);
    }

    /** Three calls with other data each, prepared; every rank's bytes are compared on the host. */
    private void gathersExactly(
            ReplicaGroups groups,
            int ranks,
            DType dtype,
            long rows,
            long cols,
            boolean below,
            Preparation preparation) {
        try (World world = World.threads(ranks, DEADLINE);
                Arena arena = Arena.ofShared()) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        List<Integer> members = groups.with(fabric.rank());
                        long bytes = DeviceMatrix.alignedBytes(dtype, rows, cols);
                        try (GpuStream stream = GpuStream.create();
                                DeviceBuffer buffer = DeviceBuffer.allocate(bytes);
                                Sb2sb<DeviceMatrix> gather =
                                        preparation.on(fabric, members.size())) {
                            DeviceMatrix inp = DeviceMatrix.in(buffer, dtype, rows, cols);
                            for (int call = 0; call < 3; call++) {
                                inp.upload(
                                        made(arena, dtype, rows, cols, call, fabric.rank()),
                                        stream);
                                stream.synchronize();
                                DeviceMatrix out = gather.call(inp);
                                Matrix seen = Matrix.allocate(arena, dtype, out.rows(), out.cols());
                                out.download(seen, stream);
                                for (int r = 0; r < members.size(); r++) {
                                    Matrix theirs =
                                            Matrix.allocate(arena, dtype, out.rows(), out.cols());
                                    gather.peer(r).download(theirs, stream);
                                    assertTrue(theirs.bitwiseEquals(seen), "at rank " + r);
                                    Matrix part =
                                            below
                                                    ? seen.rows(r * rows, rows)
                                                    : seen.block(0, rows, r * cols, cols);
                                    assertTrue(
                                            part.bitwiseEquals(
                                                    made(
                                                            arena,
                                                            dtype,
                                                            rows,
                                                            cols,
                                                            call,
                                                            members.get(r))),
                                            "call " + call + ", source " + r);
                                }
                            }
                        }
                    });
        }
    }

    private static Matrix made(Arena arena, DType dtype, long rows, long cols, int call, int rank) {
        Matrix made = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(call, rank).fill(made);
        return made;
    }

    @ParameterizedTest
    @CsvSource({
        "BF16, 128, 512, 8",
        "BF16, 64, 1024, 8",
        "BF16, 96, 512, 4",
        "FP32, 128, 512, 8",
        "FP16, 64, 1024, 8",
        "BF16, 37, 33, 3"
    })
    void untiled(DType dtype, long h, long w, int ranks) {
        ReplicaGroups groups = ReplicaGroups.consecutive(1, ranks);
        gathersExactly(
                groups,
                ranks,
                dtype,
                h,
                w,
                false,
                (world, tp) -> prepare(Sb2sbLayout.UNTILED, world, h, w, dtype, groups, tp, 1));
    }

    @ParameterizedTest
    @CsvSource({"BF16, 256, 512, 4, 2", "FP16, 512, 1024, 4, 2", "FP32, 256, 512, 8, 1"})
    void tiled(DType dtype, long m, long k, int ranks, int lnc) {
        ReplicaGroups groups = ReplicaGroups.consecutive(1, ranks);
        gathersExactly(
                groups,
                ranks,
                dtype,
                m,
                k,
                false,
                (world, tp) -> prepare(Sb2sbLayout.TILED, world, m, k, dtype, groups, tp, lnc));
    }

    @ParameterizedTest
    @CsvSource({"'0,1,2,3', 4", "'2,0/3,1', 4", "'3,0,1', 4"})
    void rowsInAnyGroups(String text, int ranks) {
        ReplicaGroups groups = ReplicaGroups.parse(text);
        gathersExactly(
                groups,
                ranks,
                DType.BF16,
                100,
                96,
                true,
                (world, tp) ->
                        prepare(Sb2sbLayout.ROWS, world, 100, 96, DType.BF16, groups, tp, 1));
    }

    private Sb2sb<DeviceMatrix> prepare(
            Sb2sbLayout layout,
            Fabric world,
            long rows,
            long cols,
            DType dtype,
            ReplicaGroups groups,
            int tp,
            int lnc) {
        return Sb2sb.prepare(
                Place.on(gpu),
                layout,
                world,
                rows,
                cols,
                dtype,
                groups,
                tp,
                lnc,
                Sb2sbConfig.DEFAULT);
    }

    /** The single call leaves its result open. */
    @ParameterizedTest
    @CsvSource({"2", "4"})
    void once(int ranks) {
        ReplicaGroups groups = ReplicaGroups.consecutive(1, ranks);
        try (World world = World.threads(ranks, DEADLINE);
                Arena arena = Arena.ofShared()) {
            world.run(
                    fabric -> {
                        gpu.bind();
                        long bytes = DeviceMatrix.alignedBytes(DType.BF16, 64, 64);
                        try (GpuStream stream = GpuStream.create();
                                DeviceBuffer buffer = DeviceBuffer.allocate(bytes)) {
                            DeviceMatrix inp = DeviceMatrix.in(buffer, DType.BF16, 64, 64);
                            inp.upload(made(arena, DType.BF16, 64, 64, 0, fabric.rank()), stream);
                            stream.synchronize();
                            try (Sb2sb<DeviceMatrix> called =
                                    Sb2sb.gather(
                                            Place.on(gpu),
                                            Sb2sbLayout.UNTILED,
                                            fabric,
                                            inp,
                                            groups,
                                            ranks,
                                            1)) {
                                DeviceMatrix out = called.result();
                                assertEquals(64L * ranks, out.cols());
                                Matrix seen = Matrix.allocate(arena, DType.BF16, 64, 64L * ranks);
                                called.peer((fabric.rank() + 1) % ranks).download(seen, stream);
                                for (int r = 0; r < ranks; r++) {
                                    assertTrue(
                                            seen.block(0, 64, r * 64L, 64)
                                                    .bitwiseEquals(
                                                            made(arena, DType.BF16, 64, 64, 0, r)));
                                }
                            }
                        }
                    });
        }
    }
}
