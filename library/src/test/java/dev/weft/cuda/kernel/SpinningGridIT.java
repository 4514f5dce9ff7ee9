package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaModules;
import dev.weft.ffi.CudaStreams;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A grid that takes every thread of the GPU and waits must not hold up what it waits for. */
@Tag("gpu")
class SpinningGridIT {

    private static final int THREADS = 1024;
    private static final int BLOCKS_PER_MULTIPROCESSOR = 2;
    private static final long DEADLINE_NS = 1_000_000_000;
    private static final int SEEN = 1;
    private static final long BYTES = 8 << 20;

    private Gpu gpu;
    private GpuStream grid;
    private GpuStream copies;
    private DeviceBuffer words;
    private DeviceBuffer data;
    private PinnedBuffer host;

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
        grid = GpuStream.create();
        copies = GpuStream.urgent();
        words = DeviceBuffer.allocate(8);
        data = DeviceBuffer.allocate(BYTES);
        host = PinnedBuffer.allocate(BYTES);
    }

    @AfterEach
    void close() {
        if (gpu != null) {
            host.close();
            data.close();
            words.close();
            copies.close();
            grid.close();
        }
    }

    @Test
    void copiesFromTheHostAndTheirFlagGoPast() {
        assertEquals(
                SEEN,
                outcome(
                        on -> {
                            CudaMemory.copyAsync(data.address(), host.address(), BYTES, on);
                            CudaStreams.writeValue32(on, words.address(), 1);
                        }));
    }

    @Test
    void rectanglesFromTheHostGoPast() {
        assertEquals(
                SEEN,
                outcome(
                        on -> {
                            CudaMemory.copy2dAsync(
                                    data.address(), 8192, host.address(), 8192, 1024, 512, on);
                            CudaStreams.writeValue32(on, words.address(), 1);
                        }));
    }

    @Test
    void theGridEndsByItselfWhereNothingComes() {
        assertEquals(2, outcome(on -> {}));
    }

    /** 1 where every block saw the flag that {@code publish} leads to, 2 where one ran out. */
    private int outcome(LongConsumer publish) {
        KernelKey key =
                KernelVariants.check(
                        GatedKernel.operands(DType.FP16, DType.FP16, false), gpu.architecture());
        long function = KernelCache.function(gpu, key, "spin_until");
        // Loaded before the grid waits: loading waits for it.
        publish.accept(copies.handle());
        copies.synchronize();
        CudaMemory.fill32Async(words.address(), 0, 2, grid.handle());
        grid.synchronize();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment arguments = arena.allocate(32, 8);
            arguments.set(JAVA_LONG, 0, words.address());
            arguments.set(JAVA_INT, 8, 1);
            arguments.set(JAVA_LONG, 16, DEADLINE_NS);
            arguments.set(JAVA_LONG, 24, words.address() + 4);
            MemorySegment pointers = arena.allocate(32, 8);
            for (int i = 0; i < 4; i++) {
                pointers.setAtIndex(JAVA_LONG, i, arguments.address() + 8L * i);
            }
            CudaModules.launch(
                    function,
                    BLOCKS_PER_MULTIPROCESSOR * gpu.multiprocessors(),
                    1,
                    THREADS,
                    0,
                    grid.handle(),
                    pointers,
                    1);
            publish.accept(copies.handle());
            grid.synchronize();
            MemorySegment result = arena.allocate(4, 4);
            CudaMemory.copyToHost(result, words.address() + 4);
            return result.get(JAVA_INT, 0);
        }
    }
}
