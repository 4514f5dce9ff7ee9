package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * When each chunk arrived, by the device's clock: a warp of Hopper's kernel that has nothing else
 * to do watches the flags. Events between the copies would tell as well, but each costs the stream
 * 1.3 us (H200), of the 24 us that a copy of 1 MiB takes; this costs nothing that could be
 * measured. One thread at a time.
 */
public final class ArrivalTimes implements AutoCloseable {

    /** Threads that watch. */
    private static final int LANES = 32;

    private static final int NONE = -1;

    private final int[] watched;
    private final DeviceBuffer list;
    private final DeviceBuffer times;

    /**
     * @param lines flags of copies that arrive one after the other
     */
    public ArrivalTimes(List<int[]> lines) {
        this.watched = watched(lines);
        this.list = GatedProduct.upload(watched);
        try (GpuStream stream = GpuStream.create()) {
            this.times =
                    DeviceBuffer.zeroed(Math.max(1, watched.length) * JAVA_LONG.byteSize(), stream);
        }
    }

    /**
     * The flags that each thread watches, one after the other: number i of a thread at i times the
     * number of threads, plus its own. A thread has flags of one line, unless there are more lines
     * than threads, so that none comes before the one it waits for.
     */
    static int[] watched(List<int[]> lines) {
        int threadsPerLine = Math.max(1, LANES / Math.max(1, lines.size()));
        int[] counts = new int[LANES];
        int[] flags = new int[0];
        for (int line = 0; line < lines.size(); line++) {
            for (int i = 0; i < lines.get(line).length; i++) {
                int thread = (line * threadsPerLine + i % threadsPerLine) % LANES;
                int at = counts[thread]++ * LANES + thread;
                if (at >= flags.length) {
                    int before = flags.length;
                    flags = Arrays.copyOf(flags, (at / LANES + 1) * LANES);
                    Arrays.fill(flags, before, flags.length, NONE);
                }
                flags[at] = lines.get(line)[i];
            }
        }
        return flags;
    }

    long listAddress() {
        return list.address();
    }

    long timesAddress() {
        return times.address();
    }

    int count() {
        return watched.length;
    }

    /** Puts the times since {@code zeroNs} by flag; those before it are of an earlier call. */
    public void read(long zeroNs, long[] arrivals) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment copy = arena.allocate(times.bytes(), JAVA_LONG.byteAlignment());
            CudaMemory.copyToHost(copy, times.address());
            for (int i = 0; i < watched.length; i++) {
                long at = copy.getAtIndex(JAVA_LONG, i) - zeroNs;
                if (watched[i] != NONE && at >= 0) {
                    arrivals[watched[i]] = at;
                }
            }
        }
    }

    @Override
    public void close() {
        list.close();
        times.close();
    }
}
