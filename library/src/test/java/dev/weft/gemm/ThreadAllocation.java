package dev.weft.gemm;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Bytes that the current thread has allocated on the heap so far. Looked up by name, because the
 * module under test does not read the management modules.
 */
final class ThreadAllocation {

    private static final MethodHandle ALLOCATED = find();

    private ThreadAllocation() {}

    static long bytes() {
        try {
            return (long) ALLOCATED.invokeExact();
        } catch (Throwable e) {
            throw new AssertionError("cannot read the thread's allocation", e);
        }
    }

    private static MethodHandle find() {
        try {
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            Class<?> plain = Class.forName("java.lang.management.ThreadMXBean");
            Class<?> bean = Class.forName("com.sun.management.ThreadMXBean");
            Object instance =
                    lookup.findStatic(
                                    Class.forName("java.lang.management.ManagementFactory"),
                                    "getThreadMXBean",
                                    MethodType.methodType(plain))
                            .invoke();
            return lookup.findVirtual(
                            bean,
                            "getCurrentThreadAllocatedBytes",
                            MethodType.methodType(long.class))
                    .bindTo(instance);
        } catch (Throwable e) {
            throw new AssertionError("this JVM does not count allocations per thread", e);
        }
    }
}
