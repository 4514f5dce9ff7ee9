package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RowAdderTest {

    private static final int[] COUNTS = {0, 1, 3, 4, 1023, 1024, 1025, 3000};

    /** At odd bytes, off the heap and on it, with bytes around that nobody may change. */
    @Test
    void addsElementByElementAndTouchesNothingElse() {
        Random random = new Random(41);
        RowAdder adder = new RowAdder();
        for (int count : COUNTS) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment a = noise(arena.allocate(4L * count + 9), random);
                MemorySegment b = noise(MemorySegment.ofArray(new byte[4 * count + 9]), random);
                MemorySegment target = noise(arena.allocate(4L * count + 9), random);
                byte[] expected = sum(a, 1, b, 4, target, 7, count);
                adder.add(a, 1, b, 4, target, 7, count);
                assertSame(expected, target, "a + b, " + count);

                expected = sum(target, 2, a, 5, target, 2, count);
                adder.add(target, 2, a, 5, target, 2, count);
                assertSame(expected, target, "target + a, " + count);

                expected = sum(b, 0, target, 3, target, 3, count);
                adder.add(b, 0, target, 3, target, 3, count);
                assertSame(expected, target, "b + target, " + count);
            }
        }
    }

    private static MemorySegment noise(MemorySegment memory, Random random) {
        for (long at = 0; at < memory.byteSize(); at++) {
            // Small exponents: no NaN, whose bits nobody promises.
            byte any = (byte) random.nextInt();
            memory.set(ValueLayout.JAVA_BYTE, at, (byte) (any & 0xBF));
        }
        return memory;
    }

    /** All bytes of the target as they should be. */
    private static byte[] sum(
            MemorySegment a,
            long aFrom,
            MemorySegment b,
            long bFrom,
            MemorySegment target,
            long targetFrom,
            int count) {
        MemorySegment expected = MemorySegment.ofArray(target.toArray(ValueLayout.JAVA_BYTE));
        for (int i = 0; i < count; i++) {
            float left = a.get(RowConverter.FLOAT, aFrom + 4L * i);
            float right = b.get(RowConverter.FLOAT, bFrom + 4L * i);
            expected.set(RowConverter.FLOAT, targetFrom + 4L * i, left + right);
        }
        return expected.toArray(ValueLayout.JAVA_BYTE);
    }

    private static void assertSame(byte[] expected, MemorySegment found, String what) {
        assertEquals(-1, MemorySegment.ofArray(expected).mismatch(found), what);
    }

    @Test
    void allocatesNothing() {
        RowAdder adder = new RowAdder();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = arena.allocate(12_000);
            MemorySegment b = arena.allocate(12_000);
            long least = Long.MAX_VALUE;
            long giveUpNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            while (least > 0 && System.nanoTime() < giveUpNs) {
                long before = ThreadAllocation.bytes();
                for (int i = 0; i < 100; i++) {
                    adder.add(a, 0, b, 0, a, 0, 3000);
                }
                least = Math.min(least, ThreadAllocation.bytes() - before);
            }
            assertEquals(0, least, "bytes in 100 calls");
        }
    }
}
