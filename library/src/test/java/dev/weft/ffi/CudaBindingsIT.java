package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The bindings on a real GPU. */
@Tag("gpu")
class CudaBindingsIT {

    private static final int DEVICE = 0;

    private long context;
    private long stream;

    @BeforeEach
    void openDevice() {
        assumeUsable("CUDA", CudaDevices.unavailable());
        context = CudaDevices.retainPrimaryContext(DEVICE);
        CudaDevices.makeCurrent(context);
        stream = CudaStreams.create(0);
    }

    @AfterEach
    void closeStream() {
        if (stream != 0) {
            CudaStreams.synchronize(stream);
            CudaStreams.destroy(stream);
        }
    }

    private static void assumeUsable(String what, Optional<String> unavailable) {
        assumeTrue(unavailable.isEmpty(), () -> "no " + what + ": " + unavailable.orElseThrow());
    }

    @Test
    void theDeviceIntroducesItself() {
        assertTrue(CudaDevices.count() > DEVICE);
        assertFalse(CudaDevices.name(DEVICE).isBlank());
        assertTrue(CudaDevices.uuid(DEVICE).matches("[0-9a-f]{32}"), CudaDevices.uuid(DEVICE));
        assertTrue(CudaDevices.attribute(DEVICE, CudaDevices.MULTIPROCESSORS) > 0);
        assertTrue(CudaDevices.totalMemory(DEVICE) > 0);
        var e = assertThrows(NativeCallException.class, () -> CudaMemory.allocate(1L << 60));
        assertTrue(e.getMessage().endsWith(" CUDA_ERROR_OUT_OF_MEMORY"), e.getMessage());
        assertEquals(context, CudaDevices.current(), "a failed call leaves the context current");
    }

    @Test
    void rectanglesFillsPlainAndOverlappingCopiesArriveInStreamOrder() {
        assumeUsable("overlapping copies", CudaMemory.overlappingUnavailable());
        MemorySegment host = CudaMemory.allocateHost(64);
        long device = CudaMemory.allocate(128);
        try {
            for (int i = 0; i < 16; i++) {
                host.setAtIndex(JAVA_INT, i, i);
            }
            CudaMemory.fill32Async(device, -1, 16, stream);
            // Columns 1 and 2 of three rows of 4 words, to the start of three rows of 5.
            CudaMemory.copy2dAsync(device, 20, host.address() + 4, 16, 8, 3, stream);
            CudaMemory.copyAsync(device + 64, device, 64, stream);
            CudaStreams.synchronize(stream);
            CudaMemory.copyOverlappingAsync(host.address(), device + 64, 64, stream);
            CudaStreams.synchronize(stream);
            int[] expected = {1, 2, -1, -1, -1, 5, 6, -1, -1, -1, 9, 10, -1, -1, -1, -1};
            assertArrayEquals(expected, host.toArray(JAVA_INT));
        } finally {
            CudaMemory.free(device);
            CudaMemory.freeHost(host);
        }
    }

    @Test
    void memoryOfOthersIsPinnedOncePerPage() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pages = arena.allocate(8192, 4096);
            long device = CudaMemory.allocate(8192);
            CudaMemory.registerHost(pages);
            try {
                var twice =
                        assertThrows(
                                NativeCallException.class, () -> CudaMemory.registerHost(pages));
                assertTrue(
                        twice.getMessage().endsWith(" CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
                        twice.getMessage());
                pages.setAtIndex(JAVA_INT, 7, 42);
                CudaMemory.copyAsync(device, pages.address(), 4096, stream);
                CudaMemory.copyAsync(pages.address() + 4096, device, 4096, stream);
                CudaStreams.synchronize(stream);
                assertEquals(42, pages.getAtIndex(JAVA_INT, 1024 + 7));
            } finally {
                CudaMemory.unregisterHost(pages);
                CudaMemory.free(device);
            }
        }
    }

    @Test
    void streamsWriteWordsAndEventsTellTheTime() {
        MemorySegment seen = CudaMemory.allocateHost(32);
        long word = CudaMemory.allocate(32);
        long[] words = LongStream.range(1, 8).map(i -> word + 4 * i).toArray();
        long other = CudaStreams.create(0);
        long start = CudaStreams.createEvent(true, false);
        long end = CudaStreams.createEvent(true, false);
        try {
            CudaMemory.fill32Async(word, 0, 8, stream);
            CudaStreams.synchronize(stream);
            CudaStreams.record(start, other);
            CudaStreams.writeValue32(other, word, 7);
            CudaStreams.writeValues32(other, words, -8);
            CudaStreams.record(end, other);
            CudaStreams.waitEvent(stream, end);
            CudaMemory.copyAsync(seen.address(), word, 32, stream);
            CudaStreams.synchronize(stream);
            assertArrayEquals(new int[] {7, -8, -8, -8, -8, -8, -8, -8}, seen.toArray(JAVA_INT));
            assertTrue(CudaStreams.queryEvent(end));
            assertTrue(CudaStreams.elapsedMs(start, end) >= 0);
        } finally {
            CudaStreams.destroyEvent(start);
            CudaStreams.destroyEvent(end);
            CudaStreams.destroy(other);
            CudaMemory.free(word);
            CudaMemory.freeHost(seen);
        }
    }

    @Test
    void aKernelIsCompiledAndLaunchedInClusters() {
        assumeUsable("NVRTC", Nvrtc.unavailable());
        int major = CudaDevices.attribute(DEVICE, CudaDevices.COMPUTE_MAJOR);
        int minor = CudaDevices.attribute(DEVICE, CudaDevices.COMPUTE_MINOR);
        String source = "extern \"C\" __global__ void add(int* p, int v) { p[blockIdx.x] += v; }";
        byte[] cubin =
                Nvrtc.compile(
                        "add.cu",
                        source,
                        Map.of(),
                        List.of("--gpu-architecture=sm_" + major + minor));
        long module = CudaModules.loadData(MemorySegment.ofArray(cubin));
        long device = CudaMemory.allocate(16);
        try (Arena arena = Arena.ofConfined()) {
            long add = CudaModules.function(module, "add");
            MemorySegment arguments = arena.allocate(16, 8);
            arguments.set(JAVA_LONG, 0, device);
            arguments.set(JAVA_INT, 8, 5);
            MemorySegment params = arena.allocate(JAVA_LONG, 2);
            params.setAtIndex(JAVA_LONG, 0, arguments.address());
            params.setAtIndex(JAVA_LONG, 1, arguments.address() + 8);
            int cluster = major >= 9 ? 2 : 1;
            CudaMemory.fill8Async(device, (byte) 0, 16, stream);
            for (int i = 0; i < 3; i++) {
                CudaModules.launch(add, 4, 1, 1, 0, stream, params, cluster);
            }
            CudaStreams.synchronize(stream);
            MemorySegment result = arena.allocate(16, 4);
            CudaMemory.copyToHost(result, device);
            assertArrayEquals(new int[] {15, 15, 15, 15}, result.toArray(JAVA_INT));
        } finally {
            CudaMemory.free(device);
        }
    }

    @Test
    void cublasLtMultipliesRowMajorMatricesWithPitchesAndATransposedB() {
        assumeUsable("cublasLt", CublasLt.unavailable());
        multiply(false);
        multiply(true);
    }

    /** Small whole numbers, so that every order of summing gives the same. */
    private void multiply(boolean transposed) {
        int m = 32;
        int n = 48;
        int k = 64;
        int aPitch = k + 8;
        int bPitch = (transposed ? k : n) + 16;
        int cPitch = n + 24;
        long workspaceBytes = 1 << 20;
        int bRows = transposed ? n : k;
        long workspace = CudaMemory.allocate(workspaceBytes);
        try (Arena arena = Arena.ofConfined();
                CublasLt.Product product =
                        CublasLt.prepare(
                                false,
                                true,
                                m,
                                n,
                                k,
                                aPitch,
                                transposed,
                                bPitch,
                                cPitch,
                                workspaceBytes,
                                4)) {
            MemorySegment a = numbers(arena, m * aPitch, 3);
            MemorySegment b = numbers(arena, bRows * bPitch, 5);
            MemorySegment c = arena.allocate(JAVA_FLOAT, (long) m * cPitch);
            long deviceA = toDevice(a);
            long deviceB = toDevice(b);
            long deviceC = CudaMemory.allocate(c.byteSize());
            for (int candidate = 0; candidate < product.candidates(); candidate++) {
                CudaMemory.fill32Async(deviceC, -1, c.byteSize() / 4, stream);
                product.run(candidate, deviceA, deviceB, deviceC, workspace, stream);
                CudaStreams.synchronize(stream);
                CudaMemory.copyToHost(c, deviceC);
                for (int row = 0; row < m; row++) {
                    for (int column = 0; column < cPitch; column++) {
                        float expected = column < n ? 0 : Float.intBitsToFloat(-1);
                        for (int i = 0; i < k && column < n; i++) {
                            int at = transposed ? column * bPitch + i : i * bPitch + column;
                            expected += number(a, row * aPitch + i) * number(b, at);
                        }
                        assertEquals(expected, c.getAtIndex(JAVA_FLOAT, row * cPitch + column));
                    }
                }
            }
            CudaMemory.free(deviceA);
            CudaMemory.free(deviceB);
            CudaMemory.free(deviceC);
        } finally {
            CudaMemory.free(workspace);
        }
    }

    private static MemorySegment numbers(Arena arena, int count, int modulus) {
        MemorySegment numbers = arena.allocate(JAVA_SHORT, count);
        for (int i = 0; i < count; i++) {
            numbers.setAtIndex(JAVA_SHORT, i, Float.floatToFloat16(i * 7 % modulus - 1));
        }
        return numbers;
    }

    private static float number(MemorySegment numbers, int index) {
        return Float.float16ToFloat(numbers.getAtIndex(JAVA_SHORT, index));
    }

    private static long toDevice(MemorySegment source) {
        long device = CudaMemory.allocate(source.byteSize());
        CudaMemory.copyToDevice(device, source);
        return device;
    }
}
