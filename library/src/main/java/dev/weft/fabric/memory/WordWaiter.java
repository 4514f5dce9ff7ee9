package dev.weft.fabric.memory;

import dev.weft.ffi.Futex;
import dev.weft.process.Fallback;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.LockSupport;

/** Blocks a thread until a shared word changes. Thread-safe. */
interface WordWaiter {

    /** The longest block, after which a waiter checks on its peers. */
    long SLICE_NS = 20_000_000;

    /** Blocks while the word holds {@code expected}, for a slice at most; may return early. */
    void block(MemorySegment part, long offset, int expected);

    void wakeAll(MemorySegment part, long offset);

    /** Futexes if the machine has them, otherwise polling, which is reported once. */
    static WordWaiter best() {
        if (Futex.unavailable().isEmpty()) {
            return new FutexWaiter();
        }
        Fallback.report(
                "polling instead of futexes",
                "%s; allow native access with --enable-native-access=dev.weft (or ALL-UNNAMED)"
                        .formatted(Futex.unavailable().get()));
        return new ParkingWaiter();
    }

    /** Waits by futex: compares and blocks in the kernel. */
    final class FutexWaiter implements WordWaiter {
        private final MemorySegment slice = Futex.timeout(SLICE_NS, Arena.global());

        @Override
        public void block(MemorySegment part, long offset, int expected) {
            Futex.await(part.address() + offset, expected, slice);
        }

        @Override
        public void wakeAll(MemorySegment part, long offset) {
            Futex.wakeAll(part.address() + offset);
        }
    }

    /** Waits by polling, for machines without futexes. Each park adds to the latency. */
    final class ParkingWaiter implements WordWaiter {
        private static final long PARK_NS = 50_000;

        @Override
        public void block(MemorySegment part, long offset, int expected) {
            long end = System.nanoTime() + SLICE_NS;
            while (Words.intAcquire(part, offset) == expected && System.nanoTime() < end) {
                LockSupport.parkNanos(this, PARK_NS);
            }
        }

        @Override
        public void wakeAll(MemorySegment part, long offset) {
            // Nothing blocks in the kernel: the poll sees the word.
        }
    }
}
