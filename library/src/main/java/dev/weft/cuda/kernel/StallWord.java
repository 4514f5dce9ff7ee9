package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * Where kernels tell of a wait that ran out of time: a word on the device that ends all other
 * waits, and the details in host memory. Read by the host once the grid has drained.
 *
 * <pre>
 * host, 32 bytes: 0 raised | 4 block | 8 tile | 12 flag | 16 seen | 20 expected
 * </pre>
 */
public final class StallWord implements AutoCloseable {

    private static final int BYTES = 32;

    private final DeviceBuffer word;
    private final PinnedBuffer details = PinnedBuffer.allocate(BYTES);

    /**
     * @param flag that never came
     * @param seen its value
     * @param expected the epoch it should have reached
     */
    public record Stall(int block, int tile, int flag, int seen, int expected) {}

    public StallWord() {
        try (GpuStream stream = GpuStream.create()) {
            this.word = DeviceBuffer.zeroed(4, stream);
        }
    }

    public long deviceAddress() {
        return word.address();
    }

    public long hostAddress() {
        return CudaMemory.hostDevicePointer(details.segment());
    }

    /** What was raised, if anything. */
    public Optional<Stall> raised() {
        MemorySegment at = details.segment();
        // Volatile: the device wrote it last, after everything else.
        if ((int) JAVA_INT.varHandle().getVolatile(at, 0L) == 0) {
            return Optional.empty();
        }
        return Optional.of(
                new Stall(
                        at.get(JAVA_INT, 4),
                        at.get(JAVA_INT, 8),
                        at.get(JAVA_INT, 12),
                        at.get(JAVA_INT, 16),
                        at.get(JAVA_INT, 20)));
    }

    @Override
    public void close() {
        word.close();
        details.close();
    }
}
