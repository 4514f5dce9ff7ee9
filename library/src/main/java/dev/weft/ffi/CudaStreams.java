package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.ask;
import static dev.weft.ffi.CudaLibrary.scratch;
import static dev.weft.ffi.CudaLibrary.words;
import static dev.weft.ffi.CudaLibrary.wordsInScratch;
import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Queues of work on the current context's device, and events that mark places in them. Any thread
 * with a current context may call; calls on an existing stream or event allocate nothing on the
 * Java heap.
 */
public final class CudaStreams {

    private static final int NOT_READY = 600;
    private static final int NON_BLOCKING = 1;
    private static final int DISABLE_TIMING = 2;
    private static final int INTERPROCESS = 4;

    private static final BoundLibrary DRIVER = CudaLibrary.DRIVER;
    private static final NativeFunction CREATE =
            DRIVER.function("cuStreamCreateWithPriority", "PII");
    private static final NativeFunction PRIORITY_RANGE =
            DRIVER.function("cuCtxGetStreamPriorityRange", "PP");
    private static final NativeFunction DESTROY = DRIVER.function("cuStreamDestroy_v2", "P");
    private static final NativeFunction SYNCHRONIZE = DRIVER.function("cuStreamSynchronize", "P");
    private static final NativeFunction WAIT_EVENT = DRIVER.function("cuStreamWaitEvent", "PPI");
    private static final NativeFunction WRITE_VALUE =
            DRIVER.function("cuStreamWriteValue32_v2", "PPII");
    private static final NativeFunction BATCH = DRIVER.function("cuStreamBatchMemOp_v2", "PIPI");
    private static final NativeFunction WAIT_VALUE =
            DRIVER.function("cuStreamWaitValue32_v2", "PPII");
    private static final NativeFunction CREATE_EVENT = DRIVER.function("cuEventCreate", "PI");
    private static final NativeFunction RECORD = DRIVER.function("cuEventRecord", "PP");
    private static final NativeFunction QUERY_EVENT = DRIVER.function("cuEventQuery", "P");
    private static final NativeFunction ELAPSED = DRIVER.function("cuEventElapsedTime", "PPP");
    private static final NativeFunction DESTROY_EVENT = DRIVER.function("cuEventDestroy_v2", "P");
    private static final NativeFunction IPC_HANDLE = DRIVER.function("cuIpcGetEventHandle", "PP");
    private static final NativeFunction IPC_OPEN =
            DRIVER.function("cuIpcOpenEventHandle", JAVA_LONG, CudaMemory.IPC_HANDLE_LAYOUT);

    /** {@code CU_STREAM_MEM_OP_WRITE_VALUE_32}. */
    private static final int WRITE_VALUE_32 = 2;

    /** Words of a CUstreamBatchMemOpParams: operation, address, value, flags, alias, padding. */
    private static final int BATCH_WORDS = 6;

    /** {@code CU_STREAM_WAIT_VALUE_GEQ}. */
    private static final int GREATER_OR_EQUAL = 0;

    private CudaStreams() {}

    /**
     * A stream that does not wait for the default stream.
     *
     * @param priority within {@link #priorityRange}, lower numbers first; 0 is the usual one
     */
    public static long create(int priority) {
        return ask(CREATE, "priority %2$d", NON_BLOCKING, priority);
    }

    /** The least urgent and the most urgent priority, for example 0 and -5. */
    public static int[] priorityRange() {
        MemorySegment out = scratch();
        PRIORITY_RANGE.run("of the current context", out.address(), out.address() + Integer.BYTES);
        return new int[] {out.get(JAVA_INT, 0), out.get(JAVA_INT, Integer.BYTES)};
    }

    /** Returns at once; the stream goes when its work is done. */
    public static void destroy(long stream) {
        DESTROY.run("%#x", stream);
    }

    /** Blocks until all work queued so far is done. */
    public static void synchronize(long stream) {
        SYNCHRONIZE.run("%#x", stream);
    }

    /** What is queued on the stream from now on waits for the event's latest record. */
    public static void waitEvent(long stream, long event) {
        WAIT_EVENT.run("stream %#x, event %#x", stream, event, 0);
    }

    /** Writes a word once all work queued before is done and visible. */
    public static void writeValue32(long stream, long address, int value) {
        long unsigned = Integer.toUnsignedLong(value);
        WRITE_VALUE.run("stream %#x, address %#x, value %d", stream, address, unsigned, 0);
    }

    /** As {@link #writeValue32}, several words, which costs the stream less than one by one. */
    public static void writeValues32(long stream, long[] addresses, int value) {
        long[] words = words();
        int most = words.length / BATCH_WORDS;
        for (int first = 0; first < addresses.length; first += most) {
            int count = Math.min(most, addresses.length - first);
            Arrays.fill(words, 0);
            for (int i = 0; i < count; i++) {
                words[BATCH_WORDS * i] = WRITE_VALUE_32;
                words[BATCH_WORDS * i + 1] = addresses[first + i];
                words[BATCH_WORDS * i + 2] = Integer.toUnsignedLong(value);
            }
            BATCH.run("stream %#x, %d writes", stream, count, wordsInScratch(), 0);
        }
    }

    /**
     * What is queued on the stream from now on waits until the word has reached a value; the
     * comparison goes round the 32-bit range. It has no deadline: whoever raises the word must have
     * one.
     */
    public static void waitValue32(long stream, long address, int value) {
        long unsigned = Integer.toUnsignedLong(value);
        WAIT_VALUE.run(
                "stream %#x, address %#x, value %d", stream, address, unsigned, GREATER_OR_EQUAL);
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
        return ask(CREATE_EVENT, "flags %d", flags);
    }

    public static void record(long event, long stream) {
        RECORD.run("event %#x, stream %#x", event, stream);
    }

    /** Whether the work before the latest record is done; true if there is no record. */
    public static boolean queryEvent(long event) {
        int code = QUERY_EVENT.call(event);
        if (code != 0 && code != NOT_READY) {
            throw QUERY_EVENT.failed(code, hex(event));
        }
        return code == 0;
    }

    /** Milliseconds between two events with timing, both done. */
    public static float elapsedMs(long start, long end) {
        return Float.intBitsToFloat((int) ask(ELAPSED, "start %#x, end %#x", start, end));
    }

    public static void destroyEvent(long event) {
        DESTROY_EVENT.run("%#x", event);
    }

    /** A name for an interprocess event that other processes on this host can open, 64 bytes. */
    public static byte[] ipcEventHandle(long event) {
        return CudaMemory.ipcHandle(IPC_HANDLE, event);
    }

    /** Another process's event, until {@link #destroyEvent}. */
    public static long ipcOpenEvent(byte[] handle) {
        MemorySegment out = scratch();
        MemorySegment byValue = CudaMemory.inScratch(handle);
        int code;
        try {
            code = (int) IPC_OPEN.handle().invokeExact(out.address(), byValue);
        } catch (Throwable e) {
            throw IPC_OPEN.broken(e);
        }
        IPC_OPEN.check(code, "handle of another process");
        return out.get(JAVA_LONG, 0);
    }
}
