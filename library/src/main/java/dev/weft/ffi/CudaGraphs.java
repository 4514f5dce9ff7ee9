package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.ask;
import static dev.weft.ffi.CudaLibrary.scratch;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * Work that is recorded once and launched many times. Any thread with a current context may call;
 * {@link #launch} allocates nothing on the Java heap.
 */
public final class CudaGraphs {

    /** What a thread may do while a stream is captured, by CUDA's numbers. */
    public enum Mode {
        /** Nothing that CUDA calls unsafe, in any thread that has not chosen another mode. */
        GLOBAL,
        /** Likewise, in the capturing thread. */
        THREAD_LOCAL,
        /** All but using the stream for what cannot be captured. */
        RELAXED
    }

    private static final BoundLibrary DRIVER = CudaLibrary.DRIVER;
    private static final NativeFunction BEGIN = DRIVER.function("cuStreamBeginCapture_v2", "PI");
    private static final NativeFunction EXCHANGE =
            DRIVER.function("cuThreadExchangeStreamCaptureMode", "P");
    private static final NativeFunction END = DRIVER.function("cuStreamEndCapture", "PP");
    private static final NativeFunction IS_CAPTURING = DRIVER.function("cuStreamIsCapturing", "PP");
    private static final NativeFunction INSTANTIATE =
            DRIVER.function("cuGraphInstantiateWithFlags", "PPP");
    private static final NativeFunction LAUNCH = DRIVER.function("cuGraphLaunch", "PP");
    private static final NativeFunction DESTROY = DRIVER.function("cuGraphDestroy", "P");
    private static final NativeFunction DESTROY_EXEC = DRIVER.function("cuGraphExecDestroy", "P");

    private CudaGraphs() {}

    /** What is queued on the stream from now on is recorded instead. */
    public static void beginCapture(long stream, Mode mode) {
        BEGIN.run("stream %#x", stream, mode.ordinal());
    }

    /** Sets this thread's mode, and returns the one that it had. */
    public static Mode exchangeMode(Mode mode) {
        MemorySegment inOut = scratch();
        inOut.set(JAVA_INT, 0, mode.ordinal());
        EXCHANGE.run("mode at %#x", inOut.address());
        return Mode.values()[inOut.get(JAVA_INT, 0)];
    }

    public static boolean isCapturing(long stream) {
        MemorySegment out = scratch();
        IS_CAPTURING.run("stream %#x", stream, out.address());
        return out.get(JAVA_INT, 0) != 0;
    }

    /** Ends the recording, and returns it as a graph that can be launched. */
    public static long endCapture(long stream) {
        MemorySegment out = scratch();
        END.run("stream %#x", stream, out.address());
        long graph = out.get(JAVA_LONG, 0);
        try {
            return ask(INSTANTIATE, "graph %2$#x", graph, 0);
        } finally {
            DESTROY.run("%#x", graph);
        }
    }

    public static void launch(long graph, long stream) {
        LAUNCH.run("graph %#x, stream %#x", graph, stream);
    }

    public static void destroy(long graph) {
        DESTROY_EXEC.run("%#x", graph);
    }
}
