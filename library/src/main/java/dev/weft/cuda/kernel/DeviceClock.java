package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaModules;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The clock that kernels read, compared with the host's and with that of events. It is read anew
 * whenever somebody asks, so no drift adds up, and nothing is measured while a call runs. One
 * thread at a time.
 */
public final class DeviceClock implements AutoCloseable {

    private static final int TRIES = 5;
    private static final long LIMIT_NS = 1_000_000_000;

    private final long function;
    private final GpuStream stream = GpuStream.create();
    private final DeviceEvent before = DeviceEvent.timed();
    private final DeviceEvent after = DeviceEvent.timed();
    private final PinnedBuffer word = PinnedBuffer.allocate(JAVA_LONG.byteSize());
    private final Arena arena = Arena.ofShared();
    private final MemorySegment pointers = arena.allocate(JAVA_LONG);

    /**
     * One moment on three clocks.
     *
     * @param deviceNs by the clock of kernels
     * @param hostNs by {@link System#nanoTime()}
     * @param errorNs how far the host's may be off
     */
    public record Moment(long deviceNs, long hostNs, long errorNs) {}

    /**
     * @param function the kernel that reads the clock
     */
    public DeviceClock(long function) {
        this.function = function;
        MemorySegment argument = arena.allocate(JAVA_LONG);
        argument.set(JAVA_LONG, 0, CudaMemory.hostDevicePointer(word.segment()));
        pointers.set(JAVA_LONG, 0, argument.address());
    }

    /**
     * The moment at which an event was recorded, which is done: from the quickest of several
     * readings of the clock between two events. Null if the device is too busy to read it.
     */
    public Moment at(DeviceEvent event) {
        Moment best = null;
        for (int i = 0; i < TRIES; i++) {
            long sentNs = System.nanoTime();
            before.record(stream);
            CudaModules.launch(function, 1, 1, 1, 0, stream.handle(), pointers, 1);
            after.record(stream);
            if (!after.isDoneWithin(LIMIT_NS, () -> {})) {
                return best;
            }
            long seenNs = System.nanoTime();
            long errorNs = (seenNs - sentNs) / 2;
            if (best == null || errorNs < best.errorNs()) {
                long sinceNs = before.nsSince(event) + after.nsSince(before) / 2;
                long read = (long) JAVA_LONG.varHandle().getVolatile(word.segment(), 0L);
                best = new Moment(read - sinceNs, sentNs + errorNs - sinceNs, errorNs);
            }
        }
        return best;
    }

    @Override
    public void close() {
        stream.close();
        before.close();
        after.close();
        word.close();
        arena.close();
    }
}
