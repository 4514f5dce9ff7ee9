package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.scratch;
import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.HexFormat;
import java.util.Optional;

/**
 * The GPUs of this machine and their primary contexts. Devices are given by number, from 0. Any
 * thread may ask; a context is current for the platform thread that made it so, and every call on
 * memory, streams and modules needs one.
 */
public final class CudaDevices {

    /** Attributes, for {@link #attribute}. */
    public static final int MULTIPROCESSORS = 16;

    public static final int COPY_ENGINES = 40;
    public static final int COMPUTE_MAJOR = 75;
    public static final int COMPUTE_MINOR = 76;
    public static final int SHARED_BYTES_PER_MULTIPROCESSOR = 81;

    private static final int PEER_ACCESS_ALREADY_ENABLED = 704;
    private static final int NAME_BYTES = 256;
    private static final int UUID_BYTES = 16;

    private static final BoundLibrary DRIVER = CudaLibrary.DRIVER;
    private static final NativeFunction VERSION = DRIVER.function("cuDriverGetVersion", JAVA_LONG);
    private static final NativeFunction COUNT = DRIVER.function("cuDeviceGetCount", JAVA_LONG);
    private static final NativeFunction GET = DRIVER.function("cuDeviceGet", JAVA_LONG, JAVA_INT);
    private static final NativeFunction NAME =
            DRIVER.function("cuDeviceGetName", JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final NativeFunction ATTRIBUTE =
            DRIVER.function("cuDeviceGetAttribute", JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final NativeFunction TOTAL_MEMORY =
            DRIVER.function("cuDeviceTotalMem_v2", JAVA_LONG, JAVA_INT);
    private static final NativeFunction UUID =
            DRIVER.function("cuDeviceGetUuid_v2", JAVA_LONG, JAVA_INT);
    private static final NativeFunction RETAIN =
            DRIVER.function("cuDevicePrimaryCtxRetain", JAVA_LONG, JAVA_INT);
    private static final NativeFunction SET_CURRENT = DRIVER.function("cuCtxSetCurrent", JAVA_LONG);
    private static final NativeFunction CURRENT = DRIVER.function("cuCtxGetCurrent", JAVA_LONG);
    private static final NativeFunction CAN_ACCESS =
            DRIVER.function("cuDeviceCanAccessPeer", JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final NativeFunction ENABLE_PEER =
            DRIVER.function("cuCtxEnablePeerAccess", JAVA_LONG, JAVA_INT);

    private CudaDevices() {}

    /** Why CUDA cannot be used here and how to get it, or empty if it can be used. */
    public static Optional<String> unavailable() {
        return DRIVER.unavailable();
    }

    /** The newest CUDA that the driver serves, for example 13000 for 13.0. */
    public static int driverVersion() {
        MemorySegment out = scratch();
        check(VERSION, VERSION.call(out.address()), "");
        return out.get(JAVA_INT, 0);
    }

    public static int count() {
        MemorySegment out = scratch();
        check(COUNT, COUNT.call(out.address()), "");
        return out.get(JAVA_INT, 0);
    }

    /** For example {@code NVIDIA H200}. */
    public static String name(int device) {
        int handle = handle(device);
        MemorySegment out = scratch();
        check(NAME, NAME.call(out.address(), NAME_BYTES, handle), device);
        return out.getString(0);
    }

    /**
     * @param attribute one of this class's constants or any other number that the driver knows
     */
    public static int attribute(int device, int attribute) {
        int handle = handle(device);
        MemorySegment out = scratch();
        int code = ATTRIBUTE.call(out.address(), attribute, handle);
        if (code != 0) {
            throw ATTRIBUTE.failed(code, "device " + device + ", attribute " + attribute);
        }
        return out.get(JAVA_INT, 0);
    }

    /** The device's memory in bytes. */
    public static long totalMemory(int device) {
        int handle = handle(device);
        MemorySegment out = scratch();
        check(TOTAL_MEMORY, TOTAL_MEMORY.call(out.address(), handle), device);
        return out.get(JAVA_LONG, 0);
    }

    /** The device's identity on every host and in every process, 32 hexadecimal digits. */
    public static String uuid(int device) {
        int handle = handle(device);
        MemorySegment out = scratch();
        check(UUID, UUID.call(out.address(), handle), device);
        return HexFormat.of().formatHex(out.asSlice(0, UUID_BYTES).toArray(JAVA_BYTE));
    }

    /** The context that all users of a device in this process share, kept as long as it runs. */
    public static long retainPrimaryContext(int device) {
        int handle = handle(device);
        MemorySegment out = scratch();
        check(RETAIN, RETAIN.call(out.address(), handle), device);
        return out.get(JAVA_LONG, 0);
    }

    /** Makes a context current for the calling thread. */
    public static void makeCurrent(long context) {
        int code = SET_CURRENT.call(context);
        if (code != 0) {
            throw SET_CURRENT.failed(code, hex(context));
        }
    }

    /** The calling thread's context, 0 if it has none. */
    public static long current() {
        MemorySegment out = scratch();
        check(CURRENT, CURRENT.call(out.address()), "");
        return out.get(JAVA_LONG, 0);
    }

    /** Whether a device can read and write another's memory over the link between them. */
    public static boolean canAccessPeer(int device, int peer) {
        int handle = handle(device);
        int peerHandle = handle(peer);
        MemorySegment out = scratch();
        int code = CAN_ACCESS.call(out.address(), handle, peerHandle);
        if (code != 0) {
            throw CAN_ACCESS.failed(code, "device " + device + ", peer " + peer);
        }
        return out.get(JAVA_INT, 0) != 0;
    }

    /** Lets the calling thread's context use the memory of another; doing so twice is fine. */
    public static void enablePeerAccess(long peerContext) {
        int code = ENABLE_PEER.call(peerContext, 0);
        if (code != 0 && code != PEER_ACCESS_ALREADY_ENABLED) {
            throw ENABLE_PEER.failed(code, hex(peerContext));
        }
    }

    private static int handle(int device) {
        MemorySegment out = scratch();
        check(GET, GET.call(out.address(), device), device);
        return out.get(JAVA_INT, 0);
    }

    private static void check(NativeFunction function, int code, int device) {
        if (code != 0) {
            throw function.failed(code, "device " + device);
        }
    }

    private static void check(NativeFunction function, int code, String arguments) {
        if (code != 0) {
            throw function.failed(code, arguments);
        }
    }
}
