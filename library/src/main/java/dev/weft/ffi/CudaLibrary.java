package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * NVIDIA's driver, loaded and initialised when this class is first used; if that fails, every use
 * reports the reason. Symbols are found one by one: a driver that lacks one serves all others. Any
 * thread may call.
 */
final class CudaLibrary {

    private static final int SCRATCH_WORDS = 32;

    /** Reachable for as long as its thread lives, so that its address may be handed out. */
    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private static final BoundLibrary LOADED =
            NativeLibraries.bind(
                    "libcuda",
                    "weft.cuda.cuda",
                    List.of("libcuda.so.1", "libcuda.so"),
                    false,
                    "it comes with NVIDIA's driver, and nvidia-smi must list a GPU",
                    CudaLibrary::codeName);
    private static final NativeFunction ERROR_NAME = LOADED.function("cuGetErrorName", "IP");

    /**
     * The driver after {@code cuInit}; initialised last, for a failure asks for the code's name.
     */
    static final BoundLibrary DRIVER = LOADED.startedBy(CudaLibrary::initialise);

    private CudaLibrary() {}

    /**
     * Native memory of the calling thread for structures and results, 256 bytes aligned to 64. The
     * next call into this package overwrites it.
     */
    static MemorySegment scratch() {
        return SCRATCH.get().memory;
    }

    /**
     * Where the calling thread puts a structure together, word by word, before {@link
     * #wordsInScratch} moves it to native memory at once. To set the fields of native memory one by
     * one takes 20 us longer in the first hundred calls, and 2 us in the first thousands, until all
     * of that is compiled: longer than the driver takes to begin a copy.
     */
    static long[] words() {
        return SCRATCH.get().words;
    }

    /** Moves {@link #words} to {@link #scratch}; the address. */
    static long wordsInScratch() {
        Scratch scratch = SCRATCH.get();
        MemorySegment.copy(scratch.words, 0, scratch.memory, JAVA_LONG, 0, SCRATCH_WORDS);
        return scratch.memory.address();
    }

    /** Two fields of 32 bits as one word. */
    static long pair(int first, int second) {
        return Integer.toUnsignedLong(first) | (long) second << Integer.SIZE;
    }

    private static final class Scratch {
        final long[] words = new long[SCRATCH_WORDS];
        final MemorySegment memory = Arena.ofAuto().allocate((long) SCRATCH_WORDS * Long.BYTES, 64);
    }

    /**
     * What a function writes to the memory that its first argument points to; if that is an int,
     * the lower half of this.
     */
    static long ask(NativeFunction function, String arguments) {
        MemorySegment out = scratch();
        function.check(function.call(out.address()), arguments);
        return out.get(JAVA_LONG, 0);
    }

    /** Likewise, of a function with one more argument, which is formatted into the error. */
    static long ask(NativeFunction function, String arguments, long a) {
        MemorySegment out = scratch();
        int code = function.call(out.address(), a);
        if (code != 0) {
            throw function.failed(code, arguments.formatted(a));
        }
        return out.get(JAVA_LONG, 0);
    }

    static long ask(NativeFunction function, String arguments, long a, long b) {
        MemorySegment out = scratch();
        int code = function.call(out.address(), a, b);
        if (code != 0) {
            throw function.failed(code, arguments.formatted(a, b));
        }
        return out.get(JAVA_LONG, 0);
    }

    private static void initialise(BoundLibrary library) {
        // With few connections to the hardware, streams that share one wait for each other: a copy
        // could wait behind a kernel that waits for it.
        NativeLibraries.setUnlessSet("CUDA_DEVICE_MAX_CONNECTIONS", "32");
        library.function("cuInit", "I").run("%d", 0);
    }

    @SuppressWarnings("restricted")
    private static String codeName(int code) {
        MemorySegment out = scratch();
        if (ERROR_NAME.call(code, out.address()) != 0) {
            return "(a code that this driver has no name for)";
        }
        return MemorySegment.ofAddress(out.get(JAVA_LONG, 0))
                .reinterpret(Long.MAX_VALUE)
                .getString(0);
    }
}
