package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.DeviceMemory;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The Helion calls in a stream of the GPU: the host waits for none, and none reserves anew. */
@Tag("gpu")
class HelionCudaStreamIT extends HelionOnGpu {

    /**
     * Calls without any wait of the host: each one's input is written, and its results are read, on
     * the stream alone.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void callsFollowEachOtherInStreamOrder(int ranks) {
        int calls = 8;
        long rows = 256;
        long k = 512;
        long n = 264;
        long m = rows * ranks;
        ranks(ranks, DType.BF16, rows, k, n, false)
                .run(
                        bench -> {
                            List<DeviceMatrix> inputs = new ArrayList<>();
                            List<DeviceMatrix> gathered = new ArrayList<>();
                            List<DeviceMatrix> products = new ArrayList<>();
                            bench.fill(0);
                            for (int call = 0; call < calls; call++) {
                                inputs.add(bench.matrix(DType.BF16, m, k));
                                bench.check.fillNormal(inputs.getLast(), 1000 + call, 1);
                                gathered.add(bench.matrix(DType.BF16, m, k));
                                products.add(bench.matrix(DType.BF16, m, n));
                            }
                            for (int call = 0; call < calls; call++) {
                                DeviceMatrix own =
                                        inputs.get(call).rows(bench.fabric.rank() * rows, rows);
                                bench.shared.local().copyFrom(own, bench.stream);
                                try (HelionResult<DeviceMatrix> result =
                                        bench.start(1 + call % 2)) {
                                    gathered.get(call).copyFrom(result.aOut(), bench.stream);
                                    products.get(call).copyFrom(result.c(), bench.stream);
                                }
                            }
                            bench.stream.synchronize();
                            for (int call = 0; call < calls; call++) {
                                String what = ranks + " ranks, call " + call;
                                DeviceMatrix a = inputs.get(call);
                                assertEquals(
                                        0,
                                        bench.check.equal(gathered.get(call), a).mismatches(),
                                        what);
                                DeviceCheck.Verdict verdict =
                                        bench.check.product(a, bench.b, false, products.get(call));
                                assertTrue(verdict.passed(), what + ": " + verdict);
                            }
                        });
    }

    /** The call is back while much work that was queued before it is still to be done. */
    @Test
    void theHostWaitsForNoStream() {
        long bytes = 1L << 32;
        try (DeviceBuffer much = DeviceBuffer.allocate(bytes)) {
            ranks(2, DType.BF16, 256, 512, 264, false)
                    .run(
                            bench -> {
                                try (DeviceEvent before = new DeviceEvent()) {
                                    bench.call(null, null, 1, 1);
                                    bench.fill(2);
                                    for (int i = 0; i < 400; i++) {
                                        CudaMemory.fill8Async(
                                                much.address(),
                                                (byte) i,
                                                bytes,
                                                bench.stream.handle());
                                    }
                                    before.record(bench.stream);
                                    try (HelionResult<DeviceMatrix> result = bench.start(1)) {
                                        boolean stillBusy = !before.isDone();
                                        result.await();
                                        assertTrue(stillBusy, "the call waited for its stream");
                                        bench.assertRight(
                                                result.aOut(), result.c(), "after much work");
                                    }
                                }
                            });
        }
    }

    /** What the caller does not bring is the same again, call after call: nothing new is made. */
    @Test
    void aCallLikeAnEarlierOneReservesNothing() {
        ranks(2, DType.BF16, 256, 512, 264, false)
                .run(
                        bench -> {
                            bench.call(null, null, 4, 0);
                            bench.fill(1);
                            bench.fabric.barrier();
                            long before = DeviceMemory.free();
                            // Nobody calls before all have counted.
                            bench.fabric.barrier();
                            for (int call = 0; call < 20; call++) {
                                try (HelionResult<DeviceMatrix> result = bench.start(4)) {
                                    result.await();
                                }
                            }
                            bench.fabric.barrier();
                            assertEquals(
                                    before,
                                    DeviceMemory.free(),
                                    "free device memory before and after 20 calls");
                            bench.fabric.barrier();
                            bench.call(null, null, 4, 2);
                        });
    }
}
