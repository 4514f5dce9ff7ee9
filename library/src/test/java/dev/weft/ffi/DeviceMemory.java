package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/** The memory of the current context's device, for tests of what calls reserve. */
public final class DeviceMemory {

    private static final NativeFunction INFO = CudaLibrary.DRIVER.function("cuMemGetInfo_v2", "PP");

    private DeviceMemory() {}

    /** Bytes that nobody has reserved. */
    public static long free() {
        MemorySegment out = CudaLibrary.scratch();
        INFO.run("", out.address(), out.address() + Long.BYTES);
        return out.get(JAVA_LONG, 0);
    }
}
