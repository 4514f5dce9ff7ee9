package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.ask;
import static dev.weft.ffi.CudaLibrary.scratch;
import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;

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
    private static final NativeFunction VERSION = DRIVER.function("cuDriverGetVersion", "P");
    private static final NativeFunction COUNT = DRIVER.function("cuDeviceGetCount", "P");
    private static final NativeFunction GET = DRIVER.function("cuDeviceGet", "PI");
    private static final NativeFunction NAME = DRIVER.function("cuDeviceGetName", "PII");
    private static final NativeFunction ATTRIBUTE = DRIVER.function("cuDeviceGetAttribute", "PII");
    private static final NativeFunction TOTAL_MEMORY = DRIVER.function("cuDeviceTotalMem_v2", "PI");
    private static final NativeFunction UUID = DRIVER.function("cuDeviceGetUuid_v2", "PI");
    private static final NativeFunction RETAIN = DRIVER.function("cuDevicePrimaryCtxRetain", "PI");
    private static final NativeFunction SET_CURRENT = DRIVER.function("cuCtxSetCurrent", "P");
    private static final NativeFunction CURRENT = DRIVER.function("cuCtxGetCurrent", "P");
    private static final NativeFunction CAN_ACCESS =
            DRIVER.function("cuDeviceCanAccessPeer", "PII");
    private static final NativeFunction ENABLE_PEER =
            DRIVER.function("cuCtxEnablePeerAccess", "PI");

    private CudaDevices() {}

    /** Why CUDA cannot be used here and how to get it, or empty if it can be used. */
    public static Optional<String> unavailable() {
        return DRIVER.unavailable();
    }

    /** The newest CUDA that the driver serves, for example 13000 for 13.0. */
    public static int driverVersion() {
        return (int) ask(VERSION, "");
    }

    public static int count() {
        return (int) ask(COUNT, "");
    }

    /** For example {@code NVIDIA H200}. */
    public static String name(int device) {
        int handle = handle(device);
        MemorySegment out = scratch();
        NAME.check(NAME.call(out.address(), NAME_BYTES, handle), "device " + device);
        return out.getString(0);
    }

    /**
     * @param attribute one of this class's constants or any other number that the driver knows
     */
    public static int attribute(int device, int attribute) {
        String arguments = "device " + device + ", attribute " + attribute;
        return (int) ask(ATTRIBUTE, arguments, attribute, handle(device));
    }

    /** The device's memory in bytes. */
    public static long totalMemory(int device) {
        return ask(TOTAL_MEMORY, "device " + device, handle(device));
    }

    /** The device's identity on every host and in every process, 32 hexadecimal digits. */
    public static String uuid(int device) {
        int handle = handle(device);
        MemorySegment out = scratch();
        UUID.check(UUID.call(out.address(), handle), "device " + device);
        return HexFormat.of().formatHex(out.asSlice(0, UUID_BYTES).toArray(JAVA_BYTE));
    }

    /** The context that all users of a device in this process share, kept as long as it runs. */
    public static long retainPrimaryContext(int device) {
        return ask(RETAIN, "device " + device, handle(device));
    }

    /** Makes a context current for the calling thread. */
    public static void makeCurrent(long context) {
        SET_CURRENT.run("%#x", context);
    }

    /** The calling thread's context, 0 if it has none. */
    public static long current() {
        return ask(CURRENT, "");
    }

    /** Whether a device can read and write another's memory over the link between them. */
    public static boolean canAccessPeer(int device, int peer) {
        String arguments = "device " + device + ", peer " + peer;
        return (int) ask(CAN_ACCESS, arguments, handle(device), handle(peer)) != 0;
    }

    /** Lets the calling thread's context use the memory of another; doing so twice is fine. */
    public static void enablePeerAccess(long peerContext) {
        int code = ENABLE_PEER.call(peerContext, 0);
        if (code != PEER_ACCESS_ALREADY_ENABLED) {
            ENABLE_PEER.check(code, hex(peerContext));
        }
    }

    private static int handle(int device) {
        return (int) ask(GET, "device %d", device);
    }
}
