package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What holds without a GPU; with one, CudaBindingsIT has the rest. */
class CudaLibraryTest {

    @Test
    void withoutADriverEveryUseTellsWhatIsMissingAndHowToGetIt() {
        assumeTrue(CudaDevices.unavailable().isPresent(), "this machine has a driver and a GPU");
        String why = CudaDevices.unavailable().orElseThrow();
        String told = why.startsWith("libcuda: ") ? why : "libcuda: " + why;
        assertTrue(why.contains("libcuda"), why);
        assertTrue(why.contains("NVIDIA's driver"), why);
        assertTrue(why.contains("-Dweft.cuda.cuda=PATH or WEFT_CUDA=PATH"), why);
        assertEquals(Optional.of(told), CudaMemory.overlappingUnavailable());
        List<Executable> uses =
                List.of(
                        CudaDevices::count,
                        CudaDevices::count,
                        () -> CudaMemory.allocate(16),
                        () -> CudaMemory.ipcOpen(new byte[64]),
                        () -> CudaMemory.copyAsync(1, 2, 3, 4),
                        () -> CudaMemory.copyOverlappingAsync(1, 2, 3, 4),
                        () -> CudaStreams.create(0),
                        () -> CudaStreams.queryEvent(1),
                        () -> CudaModules.function(1, "f"),
                        () -> CudaModules.launch(1, 1, 1, 32, 0, 0, MemorySegment.NULL, 1));
        for (Executable use : uses) {
            var e = assertThrows(IllegalStateException.class, use);
            assertEquals(told, e.getMessage());
        }
    }

    @Test
    void scratchMemoryIsTheThreadsOwnAndTakesWords() {
        MemorySegment scratch = CudaLibrary.scratch();
        assertEquals(scratch, CudaLibrary.scratch());
        assertEquals(0, scratch.address() % 64);
        long[] words = CudaLibrary.words();
        assertEquals(scratch.byteSize(), 8L * words.length);
        words[0] = 7;
        words[words.length - 1] = CudaLibrary.pair(-1, 5);
        assertEquals(scratch.address(), CudaLibrary.wordsInScratch());
        assertEquals(7, scratch.get(JAVA_LONG, 0));
        assertEquals(-1, scratch.get(JAVA_INT, scratch.byteSize() - 8));
        assertEquals(5, scratch.get(JAVA_INT, scratch.byteSize() - 4));
    }

    @Test
    void memoryOnTheJavaHeapIsRefused() {
        MemorySegment heap = MemorySegment.ofArray(new byte[8]);
        for (Executable use :
                List.<Executable>of(
                        () -> CudaMemory.hostDevicePointer(heap),
                        () -> CudaMemory.copyToDevice(1, heap),
                        () -> CudaMemory.copyToHost(heap, 1))) {
            var e = assertThrows(IllegalArgumentException.class, use);
            assertEquals("a segment of 8 bytes on the Java heap: expected native", e.getMessage());
        }
    }

    @Test
    void badArgumentsAreRefusedBeforeTheDriverSeesThem() {
        var handle =
                assertThrows(IllegalArgumentException.class, () -> CudaMemory.ipcOpen(new byte[3]));
        assertEquals("an IPC handle of 3 bytes: expected 64", handle.getMessage());
        assertThrows(IllegalArgumentException.class, () -> CudaStreams.createEvent(true, true));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment map = arena.allocate(256, 64);
            assertThrows(IllegalArgumentException.class, () -> encode(map.asSlice(32, 128)));
            assertThrows(IllegalArgumentException.class, () -> encode(map.asSlice(0, 64)));
        }
    }

    private static void encode(MemorySegment map) {
        CudaModules.encodeTensorMap(
                map, CudaModules.UINT16, 0, 64, 128, 128, 64, 128, CudaModules.L2_256B);
    }
}
