package dev.weft.fabric.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** Accessors of words in shared memory, named after their memory order. Offsets are aligned. */
public final class Words {

    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private Words() {}

    public static int intAcquire(MemorySegment part, long offset) {
        return (int) INT.getAcquire(part, offset);
    }

    static int intVolatile(MemorySegment part, long offset) {
        return (int) INT.getVolatile(part, offset);
    }

    static void intVolatile(MemorySegment part, long offset, int value) {
        INT.setVolatile(part, offset, value);
    }

    static int intAdd(MemorySegment part, long offset, int delta) {
        return (int) INT.getAndAdd(part, offset, delta);
    }

    static long longAcquire(MemorySegment part, long offset) {
        return (long) LONG.getAcquire(part, offset);
    }

    public static void longRelease(MemorySegment part, long offset, long value) {
        LONG.setRelease(part, offset, value);
    }

    static void longAdd(MemorySegment part, long offset, long delta) {
        LONG.getAndAdd(part, offset, delta);
    }
}
