package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.scratch;
import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * Queues of work on the current context's device, and events that mark places in them. Any thread
 * with a current context may call; calls on an existing stream or event allocate nothing on the
 * Java heap.
 */
public final class CudaStreams {

    /** For {@link #waitValue32}: until the word, seen as a distance that wraps, is not below. */
    public static final int WAIT_AT_LEAST = 0;

    private static final int NOT_READY = 600;
    private static final int NON_BLOCKING = 1;
    private static final int DISABLE_TIMING = 2;
    private static final int INTERPROCESS = 4;

    private static final BoundLibrary DRIVER = CudaLibrary.DRIVER;
    private static final NativeFunction CREATE =
            DRIVER.function("cuStreamCreateWithPriority", JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final NativeFunction PRIORITY_RANGE =
            DRIVER.function("cuCtxGetStreamPriorityRange", JAVA_LONG, JAVA_LONG);
    private static final NativeFunction DESTROY = DRIVER.function("cuStreamDestroy_v2", JAVA_LONG);
    private static final NativeFunction SYNCHRONIZE =
            DRIVER.function("cuStreamSynchronize", JAVA_LONG);
    private static final NativeFunction WAIT_EVENT =
            DRIVER.function("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final NativeFunction WAIT_VALUE =
            DRIVER.function("cuStreamWaitValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final NativeFunction WRITE_VALUE =
            DRIVER.function("cuStreamWriteValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final NativeFunction CREATE_EVENT =
            DRIVER.function("cuEventCreate", JAVA_LONG, JAVA_INT);
    private static final NativeFunction RECORD =
            DRIVER.function("cuEventRecord", JAVA_LONG, JAVA_LONG);
    private static final NativeFunction QUERY_EVENT = DRIVER.function("cuEventQuery", JAVA_LONG);
    private static final NativeFunction SYNCHRONIZE_EVENT =
            DRIVER.function("cuEventSynchronize", JAVA_LONG);
    private static final NativeFunction ELAPSED =
            DRIVER.function("cuEventElapsedTime", JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final NativeFunction DESTROY_EVENT =
            DRIVER.function("cuEventDestroy_v2", JAVA_LONG);
    private static final NativeFunction IPC_HANDLE =
            DRIVER.function("cuIpcGetEventHandle", JAVA_LONG, JAVA_LONG);
    private static final NativeFunction IPC_OPEN =
            DRIVER.function("cuIpcOpenEventHandle", JAVA_LONG, CudaStructs.IPC_HANDLE);

    private CudaStreams() {}

    /**
     * A stream that does not wait for the default stream.
     *
     * @param priority within {@link #priorityRange}, lower numbers first; 0 is the usual one
     */
    public static long create(int priority) {
        MemorySegment out = scratch();
        int code = CREATE.call(out.address(), NON_BLOCKING, priority);
        if (code != 0) {
            throw CREATE.failed(code, "priority " + priority);
        }
        return out.get(JAVA_LONG, 0);
    }

    /** The least urgent and the most urgent priority, for example 0 and -5. */
    public static int[] priorityRange() {
        MemorySegment out = scratch();
        int code = PRIORITY_RANGE.call(out.address(), out.address() + Integer.BYTES);
        if (code != 0) {
            throw PRIORITY_RANGE.failed(code, "of the current context");
        }
        return new int[] {out.get(JAVA_INT, 0), out.get(JAVA_INT, Integer.BYTES)};
    }

    /** Returns at once; the stream goes when its work is done. */
    public static void destroy(long stream) {
        check(DESTROY, DESTROY.call(stream), stream);
    }

    /** Blocks until all work queued so far is done. */
    public static void synchronize(long stream) {
        check(SYNCHRONIZE, SYNCHRONIZE.call(stream), stream);
    }

    /** What is queued on the stream from now on waits for the event's latest record. */
    public static void waitEvent(long stream, long event) {
        int code = WAIT_EVENT.call(stream, event, 0);
        if (code != 0) {
            throw WAIT_EVENT.failed(code, "stream " + hex(stream) + ", event " + hex(event));
        }
    }

    /**
     * What is queued on the stream from now on waits for a word that the device can read.
     *
     * @param flags {@link #WAIT_AT_LEAST} or any other number that the driver knows
     */
    public static void waitValue32(long stream, long address, int value, int flags) {
        int code = WAIT_VALUE.call(stream, address, value, flags);
        if (code != 0) {
            throw WAIT_VALUE.failed(code, word(stream, address, value) + ", flags " + flags);
        }
    }

    /** Writes a word once all work queued before is done and visible. */
    public static void writeValue32(long stream, long address, int value) {
        int code = WRITE_VALUE.call(stream, address, value, 0);
        if (code != 0) {
            throw WRITE_VALUE.failed(code, word(stream, address, value));
        }
    }

    /**
     * @param timing whether {@link #elapsedMs} will be asked; an event without is cheaper
     * @param interprocess whether other processes may open it, which excludes timing
     */
    public static long createEvent(boolean timing, boolean interprocess) {
        if (timing && interprocess) {
            throw new IllegalArgumentException(
                    "an event with timing true and interprocess true: expected one of them at"
                            + " most");
        }
        int flags = (timing ? 0 : DISABLE_TIMING) | (interprocess ? INTERPROCESS : 0);
        MemorySegment out = scratch();
        int code = CREATE_EVENT.call(out.address(), flags);
        if (code != 0) {
            throw CREATE_EVENT.failed(code, "flags " + flags);
        }
        return out.get(JAVA_LONG, 0);
    }

    public static void record(long event, long stream) {
        int code = RECORD.call(event, stream);
        if (code != 0) {
            throw RECORD.failed(code, "event " + hex(event) + ", stream " + hex(stream));
        }
    }

    /** Whether the work before the latest record is done; true if there is no record. */
    public static boolean queryEvent(long event) {
        int code = QUERY_EVENT.call(event);
        if (code == NOT_READY) {
            return false;
        }
        check(QUERY_EVENT, code, event);
        return true;
    }

    /** Blocks until the work before the latest record is done. */
    public static void synchronizeEvent(long event) {
        check(SYNCHRONIZE_EVENT, SYNCHRONIZE_EVENT.call(event), event);
    }

    /** Milliseconds between two events with timing, both done. */
    public static float elapsedMs(long start, long end) {
        MemorySegment out = scratch();
        int code = ELAPSED.call(out.address(), start, end);
        if (code != 0) {
            throw ELAPSED.failed(code, "start " + hex(start) + ", end " + hex(end));
        }
        return out.get(JAVA_FLOAT, 0);
    }

    public static void destroyEvent(long event) {
        check(DESTROY_EVENT, DESTROY_EVENT.call(event), event);
    }

    /** A name for an interprocess event that other processes on this host can open, 64 bytes. */
    public static byte[] ipcEventHandle(long event) {
        MemorySegment out = scratch();
        check(IPC_HANDLE, IPC_HANDLE.call(out.address(), event), event);
        return out.asSlice(0, CudaMemory.IPC_HANDLE_BYTES).toArray(JAVA_BYTE);
    }

    /** Another process's event, until {@link #destroyEvent}. */
    public static long ipcOpenEvent(byte[] handle) {
        MemorySegment out = scratch();
        MemorySegment place = out.asSlice(Long.BYTES, CudaMemory.IPC_HANDLE_BYTES);
        MemorySegment byValue = CudaMemory.ipcHandleIn(place, handle);
        int code;
        try {
            code = (int) IPC_OPEN.handle().invokeExact(out.address(), byValue);
        } catch (Throwable e) {
            throw IPC_OPEN.broken(e);
        }
        if (code != 0) {
            throw IPC_OPEN.failed(code, "handle of another process");
        }
        return out.get(JAVA_LONG, 0);
    }

    private static String word(long stream, long address, int value) {
        return "stream %s, address %s, value %s"
                .formatted(hex(stream), hex(address), Integer.toUnsignedString(value));
    }

    private static void check(NativeFunction function, int code, long handle) {
        if (code != 0) {
            throw function.failed(code, hex(handle));
        }
    }
}
