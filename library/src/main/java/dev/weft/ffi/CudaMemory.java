package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.clearedScratch;
import static dev.weft.ffi.CudaLibrary.scratch;
import static dev.weft.ffi.CudaStructs.COPY_2D;
import static dev.weft.ffi.CudaStructs.COPY_ATTRIBUTES;
import static dev.weft.ffi.CudaStructs.offset;
import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.Optional;

/**
 * Memory of the current context's device, host memory that it reaches, and copies between them.
 * What is allocated here stays until it is freed here. Any thread with a current context may call.
 *
 * <p>Copies and fills whose names end in {@code Async} are queued on a stream and allocate nothing
 * on the Java heap: the caller keeps both memories mapped until the stream has come past. Host
 * memory must be pinned, or the driver takes a detour that makes the caller wait.
 */
public final class CudaMemory {

    /** Bytes of a handle that names device memory to another process. */
    public static final int IPC_HANDLE_BYTES = 64;

    private static final int PORTABLE = 1;
    private static final int DEVICE_MAPPED = 2;
    private static final int WRITE_COMBINED = 4;
    private static final int LAZY_PEER_ACCESS = 1;
    private static final int UNIFIED_MEMORY = 4;
    private static final int SOURCE_IN_STREAM_ORDER = 1;
    private static final int OVERLAP_WITH_COMPUTE = 1;

    private static final long SRC_MEMORY_TYPE = offset(COPY_2D, "srcMemoryType");
    private static final long SRC_DEVICE = offset(COPY_2D, "srcDevice");
    private static final long SRC_PITCH = offset(COPY_2D, "srcPitch");
    private static final long DST_MEMORY_TYPE = offset(COPY_2D, "dstMemoryType");
    private static final long DST_DEVICE = offset(COPY_2D, "dstDevice");
    private static final long DST_PITCH = offset(COPY_2D, "dstPitch");
    private static final long WIDTH = offset(COPY_2D, "WidthInBytes");
    private static final long HEIGHT = offset(COPY_2D, "Height");

    /** A batch of one copy in scratch memory: its three arrays, its attributes and their index. */
    private static final long BATCH_DST = 0;

    private static final long BATCH_SRC = 8;
    private static final long BATCH_BYTES = 16;
    private static final long BATCH_INDEX = 24;
    private static final long BATCH_ATTRIBUTES = 32;
    private static final long ACCESS_ORDER =
            BATCH_ATTRIBUTES + offset(COPY_ATTRIBUTES, "srcAccessOrder");
    private static final long FLAGS = BATCH_ATTRIBUTES + offset(COPY_ATTRIBUTES, "flags");

    private static final BoundLibrary DRIVER = CudaLibrary.DRIVER;
    private static final NativeFunction ALLOCATE =
            DRIVER.function("cuMemAlloc_v2", JAVA_LONG, JAVA_LONG);
    private static final NativeFunction FREE = DRIVER.function("cuMemFree_v2", JAVA_LONG);
    private static final NativeFunction ALLOCATE_HOST =
            DRIVER.function("cuMemHostAlloc", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final NativeFunction FREE_HOST = DRIVER.function("cuMemFreeHost", JAVA_LONG);
    private static final NativeFunction REGISTER_HOST =
            DRIVER.function("cuMemHostRegister_v2", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final NativeFunction UNREGISTER_HOST =
            DRIVER.function("cuMemHostUnregister", JAVA_LONG);
    private static final NativeFunction HOST_DEVICE_POINTER =
            DRIVER.function("cuMemHostGetDevicePointer_v2", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final NativeFunction IPC_HANDLE =
            DRIVER.function("cuIpcGetMemHandle", JAVA_LONG, JAVA_LONG);
    private static final NativeFunction IPC_OPEN =
            DRIVER.function("cuIpcOpenMemHandle_v2", JAVA_LONG, CudaStructs.IPC_HANDLE, JAVA_INT);
    private static final NativeFunction IPC_CLOSE =
            DRIVER.function("cuIpcCloseMemHandle", JAVA_LONG);

    private static final NativeFunction COPY =
            DRIVER.function("cuMemcpyAsync", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final NativeFunction COPY_RECTANGLE =
            DRIVER.function("cuMemcpy2DAsync_v2", JAVA_LONG, JAVA_LONG);
    private static final NativeFunction COPY_BATCH =
            DRIVER.function("cuMemcpyBatchAsync_v2", BoundLibrary.longs(8));
    private static final NativeFunction COPY_TO_DEVICE_NOW =
            DRIVER.function("cuMemcpyHtoD_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final NativeFunction COPY_TO_HOST_NOW =
            DRIVER.function("cuMemcpyDtoH_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG);
    // The byte is passed as an int: a C function reads the lowest byte of the register.
    private static final NativeFunction FILL_8 =
            DRIVER.function("cuMemsetD8Async", JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final NativeFunction FILL_32 =
            DRIVER.function("cuMemsetD32Async", JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);

    private CudaMemory() {}

    /** Device memory, aligned to 256 bytes, its contents undefined. */
    public static long allocate(long bytes) {
        MemorySegment out = scratch();
        int code = ALLOCATE.call(out.address(), bytes);
        if (code != 0) {
            throw ALLOCATE.failed(code, bytes + " bytes");
        }
        return out.get(JAVA_LONG, 0);
    }

    /** Waits for the device's work on it. */
    public static void free(long pointer) {
        check(FREE, FREE.call(pointer), pointer);
    }

    /**
     * Host memory that stays where it is and that every device reaches at the same address.
     *
     * @param writeCombined quicker for the device to read, very slow for the host to
     */
    @SuppressWarnings("restricted")
    public static MemorySegment allocateHost(long bytes, boolean writeCombined) {
        int flags = PORTABLE | DEVICE_MAPPED | (writeCombined ? WRITE_COMBINED : 0);
        MemorySegment out = scratch();
        int code = ALLOCATE_HOST.call(out.address(), bytes, flags);
        if (code != 0) {
            throw ALLOCATE_HOST.failed(code, bytes + " bytes, flags " + flags);
        }
        return MemorySegment.ofAddress(out.get(JAVA_LONG, 0)).reinterpret(bytes);
    }

    /** Of {@link #allocateHost}; the segment must not be used afterwards. */
    public static void freeHost(MemorySegment segment) {
        check(FREE_HOST, FREE_HOST.call(segment.address()), segment.address());
    }

    /**
     * Pins host memory that something else has allocated or mapped, until {@link #unregisterHost}:
     * copies from and to it are then as quick as those of {@link #allocateHost}. Whole pages are
     * pinned, and no page may be registered twice.
     */
    public static void registerHost(MemorySegment segment) {
        requireNative(segment);
        int flags = PORTABLE | DEVICE_MAPPED;
        int code = REGISTER_HOST.call(segment.address(), segment.byteSize(), flags);
        if (code != 0) {
            throw REGISTER_HOST.failed(
                    code,
                    hex(segment.address()) + ", " + segment.byteSize() + " bytes, flags " + flags);
        }
    }

    /** Of {@link #registerHost}, before the memory is freed or unmapped. */
    public static void unregisterHost(MemorySegment segment) {
        check(UNREGISTER_HOST, UNREGISTER_HOST.call(segment.address()), segment.address());
    }

    /** Where the device sees pinned host memory. */
    public static long hostDevicePointer(MemorySegment segment) {
        requireNative(segment);
        MemorySegment out = scratch();
        int code = HOST_DEVICE_POINTER.call(out.address(), segment.address(), 0);
        check(HOST_DEVICE_POINTER, code, segment.address());
        return out.get(JAVA_LONG, 0);
    }

    /**
     * A name for device memory that other processes on this host can open. It stands for the whole
     * allocation: the receiver also needs the distance from its start.
     */
    public static byte[] ipcHandle(long pointer) {
        MemorySegment out = scratch();
        check(IPC_HANDLE, IPC_HANDLE.call(out.address(), pointer), pointer);
        return out.asSlice(0, IPC_HANDLE_BYTES).toArray(JAVA_BYTE);
    }

    /** The allocation of another process, until {@link #ipcClose}. */
    public static long ipcOpen(byte[] handle) {
        MemorySegment out = scratch();
        MemorySegment byValue = ipcHandleIn(out.asSlice(Long.BYTES, IPC_HANDLE_BYTES), handle);
        int code;
        try {
            code = (int) IPC_OPEN.handle().invokeExact(out.address(), byValue, LAZY_PEER_ACCESS);
        } catch (Throwable e) {
            throw IPC_OPEN.broken(e);
        }
        if (code != 0) {
            throw IPC_OPEN.failed(code, "handle of another process");
        }
        return out.get(JAVA_LONG, 0);
    }

    public static void ipcClose(long pointer) {
        check(IPC_CLOSE, IPC_CLOSE.call(pointer), pointer);
    }

    /** Between any two memories, device or host; the driver sees from the addresses which. */
    public static void copyAsync(long dst, long src, long bytes, long stream) {
        checkCopy(COPY, COPY.call(dst, src, bytes, stream), dst, src, bytes);
    }

    /**
     * A rectangle between any two memories, device or host.
     *
     * @param dstPitch bytes from one row to the next, at least {@code widthBytes}
     * @param srcPitch likewise
     */
    public static void copy2dAsync(
            long dst,
            long dstPitch,
            long src,
            long srcPitch,
            long widthBytes,
            long rows,
            long stream) {
        MemorySegment copy = clearedScratch();
        copy.set(JAVA_INT, SRC_MEMORY_TYPE, UNIFIED_MEMORY);
        copy.set(JAVA_LONG, SRC_DEVICE, src);
        copy.set(JAVA_LONG, SRC_PITCH, srcPitch);
        copy.set(JAVA_INT, DST_MEMORY_TYPE, UNIFIED_MEMORY);
        copy.set(JAVA_LONG, DST_DEVICE, dst);
        copy.set(JAVA_LONG, DST_PITCH, dstPitch);
        copy.set(JAVA_LONG, WIDTH, widthBytes);
        copy.set(JAVA_LONG, HEIGHT, rows);
        int code = COPY_RECTANGLE.call(copy.address(), stream);
        if (code != 0) {
            throw COPY_RECTANGLE.failed(
                    code,
                    "%s%s%s bytes x %s rows"
                            .formatted(
                                    rectangle("to", dst, dstPitch),
                                    rectangle("from", src, srcPitch),
                                    widthBytes,
                                    rows));
        }
    }

    /** Why {@link #copyOverlappingAsync} cannot be used here, or empty if it can be used. */
    public static Optional<String> overlappingUnavailable() {
        return DRIVER.unavailable(COPY_BATCH.symbol());
    }

    /**
     * Like {@link #copyAsync}, with the wish that the copy leave the multiprocessors to kernels.
     *
     * @param stream any but the default stream 0
     */
    public static void copyOverlappingAsync(long dst, long src, long bytes, long stream) {
        MemorySegment batch = clearedScratch();
        long address = batch.address();
        batch.set(JAVA_LONG, BATCH_DST, dst);
        batch.set(JAVA_LONG, BATCH_SRC, src);
        batch.set(JAVA_LONG, BATCH_BYTES, bytes);
        batch.set(JAVA_INT, ACCESS_ORDER, SOURCE_IN_STREAM_ORDER);
        batch.set(JAVA_INT, FLAGS, OVERLAP_WITH_COMPUTE);
        int code;
        try {
            code =
                    (int)
                            COPY_BATCH
                                    .handle()
                                    .invokeExact(
                                            address + BATCH_DST,
                                            address + BATCH_SRC,
                                            address + BATCH_BYTES,
                                            1L,
                                            address + BATCH_ATTRIBUTES,
                                            address + BATCH_INDEX,
                                            1L,
                                            stream);
        } catch (Throwable e) {
            throw COPY_BATCH.broken(e);
        }
        checkCopy(COPY_BATCH, code, dst, src, bytes);
    }

    /** The whole segment; it is there for every stream when this returns. */
    public static void copyToDevice(long dst, MemorySegment src) {
        requireNative(src);
        int code = COPY_TO_DEVICE_NOW.call(dst, src.address(), src.byteSize());
        Reference.reachabilityFence(src);
        checkCopy(COPY_TO_DEVICE_NOW, code, dst, src.address(), src.byteSize());
        // The driver returns when it has taken a copy; streams of Weft do not wait for its stream.
        CudaStreams.synchronize(0);
    }

    /** Fills the whole segment; it is complete when this returns. */
    public static void copyToHost(MemorySegment dst, long src) {
        requireNative(dst);
        int code = COPY_TO_HOST_NOW.call(dst.address(), src, dst.byteSize());
        Reference.reachabilityFence(dst);
        checkCopy(COPY_TO_HOST_NOW, code, dst.address(), src, dst.byteSize());
    }

    public static void fill8Async(long dst, byte value, long bytes, long stream) {
        int code = FILL_8.call(dst, value & 0xff, bytes, stream);
        if (code != 0) {
            throw FILL_8.failed(code, "to " + hex(dst) + ", " + bytes + " bytes");
        }
    }

    /**
     * @param dst aligned to 4 bytes
     * @param count number of 32-bit words
     */
    public static void fill32Async(long dst, int value, long count, long stream) {
        int code = FILL_32.call(dst, value, count, stream);
        if (code != 0) {
            throw FILL_32.failed(code, "to " + hex(dst) + ", " + count + " words");
        }
    }

    /** Puts a handle into native memory, from where it is passed by value. */
    static MemorySegment ipcHandleIn(MemorySegment place, byte[] handle) {
        if (handle.length != IPC_HANDLE_BYTES) {
            throw new IllegalArgumentException(
                    "an IPC handle of " + handle.length + " bytes: expected " + IPC_HANDLE_BYTES);
        }
        return place.copyFrom(MemorySegment.ofArray(handle));
    }

    static void requireNative(MemorySegment segment) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "a segment of %s bytes on the Java heap: expected native"
                            .formatted(segment.byteSize()));
        }
    }

    private static String rectangle(String direction, long address, long pitch) {
        return direction + " " + hex(address) + " pitch " + pitch + ", ";
    }

    private static void checkCopy(
            NativeFunction function, int code, long dst, long src, long bytes) {
        if (code != 0) {
            throw function.failed(
                    code, "to " + hex(dst) + ", from " + hex(src) + ", " + bytes + " bytes");
        }
    }

    private static void check(NativeFunction function, int code, long pointer) {
        if (code != 0) {
            throw function.failed(code, hex(pointer));
        }
    }
}
