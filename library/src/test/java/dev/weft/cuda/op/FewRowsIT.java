package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Products of few rows: they have kernels of their own, and the bits of the others. */
@Tag("gpu")
class FewRowsIT {

    private static final int MANY = 256;
    private static final List<Integer> ROWS = List.of(1, 2, 7, 8, 9, 20, 31, 32, 33, 100, 128);

    private Gpu gpu;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    private CudaAllGatherMatmul operator(DeviceProblem p, Shards shards) {
        return CudaAllGatherMatmul.withHostPeers(gpu, 0)
                .a(shards, p.a().dtype())
                .b(p.b(), p.transposed())
                .output(p.out())
                .algorithm(Algorithm.MESH_PULL)
                .deadline(Duration.ofSeconds(5))
                .prepare();
    }

    /** The first rows, most of which a peer has. */
    private static DeviceMatrix call(
            CudaAllGatherMatmul op, DeviceProblem p, Shards shards, DeviceCheck check) {
        try (GpuStream stream = GpuStream.create()) {
            op.peerShard(1, shards).copyFrom(p.a().rows(shards.rows(0), shards.rows(1)));
            op.nextShard(shards).upload(p.a().rows(0, shards.rows(0)), stream);
            check.poison(op.product(0));
            return op.callInPlace(View.PIPELINED, shards).product(0);
        }
    }

    /** Few columns and many, numbers that no tile divides, more stages than there are and fewer. */
    @ParameterizedTest
    @CsvSource({
        "4096, 1792, FP16, FP16, false",
        "4096, 1792, BF16, BF16, true",
        "4096, 5000, BF16, FP32, false",
        "4096, 5000, FP16, FP32, true",
        "64, 1, FP16, FP16, false",
        "72, 17, BF16, FP32, true",
        "200, 100, FP16, FP32, false",
        "1000, 4224, BF16, BF16, false",
        "8, 9000, FP16, FP16, true",
        "2080, 40000, BF16, BF16, true",
    })
    void theBitsAreThoseOfManyRows(long k, long n, DType type, DType out, boolean transposed) {
        try (Arena arena = Arena.ofShared();
                DeviceCheck check = new DeviceCheck(gpu)) {
            Shards many = Shards.of(40, MANY - 40);
            DeviceProblem p = DeviceProblem.random(arena, many, k, n, type, out, transposed);
            try (CudaAllGatherMatmul reference = operator(p, many)) {
                DeviceMatrix expected = DeviceProblem.like(call(reference, p, many, check));
                try (GpuStream stream = GpuStream.create()) {
                    expected.copyFrom(reference.product(0), stream);
                    stream.synchronize();
                }
                for (int rows : ROWS) {
                    Shards few = Shards.of(rows / 4, rows - rows / 4);
                    DeviceMatrix first = expected.rows(0, rows);
                    String what = rows + " rows";
                    assertSame(check, first, call(reference, p, few, check), what + " of many");
                    try (CudaAllGatherMatmul op = operator(p, few)) {
                        assertSame(check, first, call(op, p, few, check), what);
                        Shards one = Shards.of(0, 1);
                        assertSame(check, first.rows(0, 1), call(op, p, one, check), "one " + what);
                    }
                }
            }
        }
    }

    private static void assertSame(
            DeviceCheck check, DeviceMatrix expected, DeviceMatrix found, String what) {
        assertEquals(expected.rows(), found.rows(), what);
        assertEquals(0, check.equal(expected, found).mismatches(), what);
    }
}
