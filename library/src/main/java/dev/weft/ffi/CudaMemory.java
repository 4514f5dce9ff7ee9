package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.ask;
import static dev.weft.ffi.CudaLibrary.scratch;
import static dev.weft.ffi.CudaLibrary.words;
import static dev.weft.ffi.CudaLibrary.wordsInScratch;
import static java.lang.foreign.MemoryLayout.sequenceLayout;
import static java.lang.foreign.MemoryLayout.structLayout;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
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
    private static final int LAZY_PEER_ACCESS = 1;
    private static final int UNIFIED_MEMORY = 4;
    private static final int SOURCE_IN_STREAM_ORDER = 1;
    private static final int OVERLAP_WITH_COMPUTE = 1;

    /** CUipcMemHandle and CUipcEventHandle, both passed by value. */
    static final StructLayout IPC_HANDLE_LAYOUT =
            structLayout(sequenceLayout(IPC_HANDLE_BYTES, JAVA_BYTE));

    /** A batch of one copy in scratch memory: its three arrays, its attributes and their index. */
    private static final long BATCH_DST = 0;

    private static final long BATCH_SRC = 8;
    private static final long BATCH_BYTES = 16;
    private static final long BATCH_INDEX = 24;

    /** A CUmemcpyAttributes: access order, two location hints of 8 bytes each, flags. */
    private static final long BATCH_ATTRIBUTES = 32;

    private static final BoundLibrary DRIVER = CudaLibrary.DRIVER;
    private static final NativeFunction ALLOCATE = DRIVER.function("cuMemAlloc_v2", "PP");
    private static final NativeFunction FREE = DRIVER.function("cuMemFree_v2", "P");
    private static final NativeFunction ALLOCATE_HOST = DRIVER.function("cuMemHostAlloc", "PPI");
    private static final NativeFunction FREE_HOST = DRIVER.function("cuMemFreeHost", "P");
    private static final NativeFunction REGISTER_HOST =
            DRIVER.function("cuMemHostRegister_v2", "PPI");
    private static final NativeFunction UNREGISTER_HOST =
            DRIVER.function("cuMemHostUnregister", "P");
    private static final NativeFunction HOST_DEVICE_POINTER =
            DRIVER.function("cuMemHostGetDevicePointer_v2", "PPI");
    private static final NativeFunction IPC_HANDLE = DRIVER.function("cuIpcGetMemHandle", "PP");
    private static final NativeFunction IPC_OPEN =
            DRIVER.function("cuIpcOpenMemHandle_v2", JAVA_LONG, IPC_HANDLE_LAYOUT, JAVA_INT);
    private static final NativeFunction IPC_CLOSE = DRIVER.function("cuIpcCloseMemHandle", "P");

    private static final NativeFunction COPY = DRIVER.function("cuMemcpyAsync", "PPPP");
    private static final NativeFunction COPY_RECTANGLE =
            DRIVER.function("cuMemcpy2DAsync_v2", "PP");
    private static final NativeFunction COPY_BATCH =
            DRIVER.function("cuMemcpyBatchAsync_v2", "PPPPPPPP");
    private static final NativeFunction COPY_TO_DEVICE_NOW =
            DRIVER.function("cuMemcpyHtoD_v2", "PPP");
    private static final NativeFunction COPY_TO_HOST_NOW =
            DRIVER.function("cuMemcpyDtoH_v2", "PPP");
    // The byte is passed as an int: a C function reads the lowest byte of the register.
    private static final NativeFunction FILL_8 = DRIVER.function("cuMemsetD8Async", "PIPP");
    private static final NativeFunction FILL_32 = DRIVER.function("cuMemsetD32Async", "PIPP");

    private static final String COPIED = "to %#x, from %#x, %d bytes";

    private CudaMemory() {}

    /** Device memory, aligned to 256 bytes, its contents undefined. */
    public static long allocate(long bytes) {
        return ask(ALLOCATE, "%d bytes", bytes);
    }

    /** Waits for the device's work on it. */
    public static void free(long pointer) {
        FREE.run("%#x", pointer);
    }

    /** Host memory that stays where it is and that every device reaches at the same address. */
    @SuppressWarnings("restricted")
    public static MemorySegment allocateHost(long bytes) {
        long address = ask(ALLOCATE_HOST, "%d bytes, flags %d", bytes, PORTABLE | DEVICE_MAPPED);
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    /** Of {@link #allocateHost}; the segment must not be used afterwards. */
    public static void freeHost(MemorySegment segment) {
        FREE_HOST.run("%#x", segment.address());
    }

    /**
     * Pins host memory that something else has allocated or mapped, until {@link #unregisterHost}:
     * copies from and to it are then as quick as those of {@link #allocateHost}. Whole pages are
     * pinned, and no page may be registered twice.
     */
    public static void registerHost(MemorySegment segment) {
        requireNative(segment);
        REGISTER_HOST.run(
                "%#x, %d bytes, flags %d",
                segment.address(), segment.byteSize(), PORTABLE | DEVICE_MAPPED);
    }

    /** Of {@link #registerHost}, before the memory is freed or unmapped. */
    public static void unregisterHost(MemorySegment segment) {
        UNREGISTER_HOST.run("%#x", segment.address());
    }

    /** Where the device sees pinned host memory. */
    public static long hostDevicePointer(MemorySegment segment) {
        requireNative(segment);
        return ask(HOST_DEVICE_POINTER, "%#x", segment.address(), 0);
    }

    /**
     * A name for device memory that other processes on this host can open. It stands for the whole
     * allocation: the receiver also needs the distance from its start.
     */
    public static byte[] ipcHandle(long pointer) {
        return ipcHandle(IPC_HANDLE, pointer);
    }

    /** Of memory or of an event. */
    static byte[] ipcHandle(NativeFunction function, long of) {
        MemorySegment out = scratch();
        function.run("%2$#x", out.address(), of);
        return out.asSlice(0, IPC_HANDLE_BYTES).toArray(JAVA_BYTE);
    }

    /** The allocation of another process, until {@link #ipcClose}. */
    public static long ipcOpen(byte[] handle) {
        MemorySegment out = scratch();
        MemorySegment byValue = inScratch(handle);
        long flags = LAZY_PEER_ACCESS;
        int code;
        try {
            code = (int) IPC_OPEN.handle().invokeExact(out.address(), byValue, flags);
        } catch (Throwable e) {
            throw IPC_OPEN.broken(e);
        }
        IPC_OPEN.check(code, "handle of another process");
        return out.get(JAVA_LONG, 0);
    }

    public static void ipcClose(long pointer) {
        IPC_CLOSE.run("%#x", pointer);
    }

    /** Between any two memories, device or host; the driver sees from the addresses which. */
    public static void copyAsync(long dst, long src, long bytes, long stream) {
        COPY.run(COPIED, dst, src, bytes, stream);
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
        if (rows == 1 || widthBytes == dstPitch && widthBytes == srcPitch) {
            copyAsync(dst, src, rows * widthBytes, stream);
            return;
        }
        // A CUDA_MEMCPY2D: x, y, type, host, device, array, pitch of both sides, and the size.
        long[] copy = words();
        copy[0] = 0;
        copy[1] = 0;
        copy[2] = UNIFIED_MEMORY;
        copy[3] = 0;
        copy[4] = src;
        copy[5] = 0;
        copy[6] = srcPitch;
        copy[7] = 0;
        copy[8] = 0;
        copy[9] = UNIFIED_MEMORY;
        copy[10] = 0;
        copy[11] = dst;
        copy[12] = 0;
        copy[13] = dstPitch;
        copy[14] = widthBytes;
        copy[15] = rows;
        int code = COPY_RECTANGLE.call(wordsInScratch(), stream);
        if (code != 0) {
            throw COPY_RECTANGLE.failed(
                    code,
                    "to %#x pitch %d, from %#x pitch %d, %d bytes x %d rows"
                            .formatted(dst, dstPitch, src, srcPitch, widthBytes, rows));
        }
    }

    /** Why {@link #copyOverlappingAsync} cannot be used here, or empty if it can be used. */
    public static Optional<String> overlappingUnavailable() {
        return DRIVER.unavailable(COPY_BATCH.symbol());
    }

    /**
     * Like {@link #copyAsync}, asking that the copy leave the multiprocessors to kernels.
     *
     * @param stream any but the default stream 0
     */
    public static void copyOverlappingAsync(long dst, long src, long bytes, long stream) {
        long[] batch = words();
        batch[0] = dst;
        batch[1] = src;
        batch[2] = bytes;
        batch[3] = 0;
        batch[4] = SOURCE_IN_STREAM_ORDER;
        batch[5] = 0;
        batch[6] = CudaLibrary.pair(0, OVERLAP_WITH_COMPUTE);
        long address = wordsInScratch();
        int code =
                COPY_BATCH.call(
                        address + BATCH_DST,
                        address + BATCH_SRC,
                        address + BATCH_BYTES,
                        1,
                        address + BATCH_ATTRIBUTES,
                        address + BATCH_INDEX,
                        1,
                        stream);
        if (code != 0) {
            throw COPY_BATCH.failed(code, COPIED.formatted(dst, src, bytes));
        }
    }

    /** The whole segment; it is there for every stream when this returns. */
    public static void copyToDevice(long dst, MemorySegment src) {
        requireNative(src);
        COPY_TO_DEVICE_NOW.run(COPIED, dst, src.address(), src.byteSize());
        Reference.reachabilityFence(src);
        // The driver returns when it has taken a copy; streams of Weft do not wait for its stream.
        CudaStreams.synchronize(0);
    }

    /** Fills the whole segment; it is complete when this returns. */
    public static void copyToHost(MemorySegment dst, long src) {
        requireNative(dst);
        COPY_TO_HOST_NOW.run(COPIED, dst.address(), src, dst.byteSize());
        Reference.reachabilityFence(dst);
    }

    public static void fill8Async(long dst, byte value, long bytes, long stream) {
        FILL_8.run("to %#x, %3$d bytes", dst, value & 0xff, bytes, stream);
    }

    /**
     * @param dst aligned to 4 bytes
     * @param count number of 32-bit words
     */
    public static void fill32Async(long dst, int value, long count, long stream) {
        FILL_32.run("to %#x, %3$d words", dst, value, count, stream);
    }

    /** Puts a handle into scratch memory, from where it is passed by value. */
    static MemorySegment inScratch(byte[] handle) {
        if (handle.length != IPC_HANDLE_BYTES) {
            throw new IllegalArgumentException(
                    "an IPC handle of " + handle.length + " bytes: expected " + IPC_HANDLE_BYTES);
        }
        // Behind the place where the driver puts what it opens.
        return scratch()
                .asSlice(Long.BYTES, IPC_HANDLE_BYTES)
                .copyFrom(MemorySegment.ofArray(handle));
    }

    private static void requireNative(MemorySegment segment) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "a segment of %s bytes on the Java heap: expected native"
                            .formatted(segment.byteSize()));
        }
    }
}
