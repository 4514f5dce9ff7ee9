package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * NVIDIA's run-time compiler for CUDA C++. The library is loaded when this class is first used; if
 * that fails, every use reports the reason. It needs no GPU and no context. Any thread may call.
 */
public final class Nvrtc {

    private static final BoundLibrary LIBRARY =
            NativeLibraries.bind(
                    "libnvrtc",
                    "weft.cuda.nvrtc",
                    List.of("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"),
                    true,
                    "it comes with the CUDA toolkit 12 or newer and with the Python package"
                            + " nvidia-cuda-nvrtc",
                    Nvrtc::codeName);
    private static final MethodHandle CODE_NAME =
            LIBRARY.bind("nvrtcGetErrorString", FunctionDescriptor.of(ADDRESS, JAVA_INT));
    private static final NativeFunction VERSION = LIBRARY.function("nvrtcVersion", "PP");
    private static final NativeFunction CREATE = LIBRARY.function("nvrtcCreateProgram", "PPPIPP");
    private static final NativeFunction COMPILE = LIBRARY.function("nvrtcCompileProgram", "PIP");
    private static final NativeFunction LOG_SIZE = LIBRARY.function("nvrtcGetProgramLogSize", "PP");
    private static final NativeFunction LOG = LIBRARY.function("nvrtcGetProgramLog", "PP");
    private static final NativeFunction CUBIN_SIZE = LIBRARY.function("nvrtcGetCUBINSize", "PP");
    private static final NativeFunction CUBIN = LIBRARY.function("nvrtcGetCUBIN", "PP");
    private static final NativeFunction DESTROY = LIBRARY.function("nvrtcDestroyProgram", "P");

    private Nvrtc() {}

    /** Why NVRTC cannot be used here and how to get it, or empty if it can be used. */
    public static Optional<String> unavailable() {
        return LIBRARY.unavailable();
    }

    /** For example {@code 13.0}. */
    public static String version() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_INT, 2);
            VERSION.check(VERSION.call(out.address(), out.address() + Integer.BYTES), "");
            return out.getAtIndex(JAVA_INT, 0) + "." + out.getAtIndex(JAVA_INT, 1);
        }
    }

    /**
     * @param name the name of the source in the compiler's messages
     * @param headers texts by the names under which the source includes them
     * @param options among them {@code --gpu-architecture=sm_NN}, a real architecture
     * @return the machine code, for {@link CudaModules#loadData}
     * @throws NativeCallException with the compiler's log if the source does not compile
     */
    public static byte[] compile(
            String name, String source, Map<String, String> headers, List<String> options) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment program = create(name, source, headers, arena);
            try {
                return compile(program.get(JAVA_LONG, 0), name, options, arena);
            } finally {
                DESTROY.check(DESTROY.call(program.address()), name);
            }
        }
    }

    /** The memory that holds the program's handle, which destroying it takes. */
    private static MemorySegment create(
            String name, String source, Map<String, String> headers, Arena arena) {
        MemorySegment program = arena.allocate(JAVA_LONG);
        List<Map.Entry<String, String>> entries = List.copyOf(headers.entrySet());
        long texts = strings(entries.stream().map(Map.Entry::getValue).toList(), arena);
        long names = strings(entries.stream().map(Map.Entry::getKey).toList(), arena);
        int code =
                CREATE.callRarely(
                        program.address(),
                        arena.allocateFrom(source).address(),
                        arena.allocateFrom(name).address(),
                        entries.size(),
                        texts,
                        names);
        CREATE.check(code, name + ", headers " + headers.keySet());
        return program;
    }

    private static byte[] compile(long program, String name, List<String> options, Arena arena) {
        int code = COMPILE.call(program, options.size(), strings(options, arena));
        if (code != 0) {
            throw COMPILE.failed(code, name + ", options " + options, log(program, name, arena));
        }
        MemorySegment size = arena.allocate(JAVA_LONG);
        CUBIN_SIZE.check(CUBIN_SIZE.call(program, size.address()), name);
        long bytes = size.get(JAVA_LONG, 0);
        if (bytes == 0) {
            throw new IllegalArgumentException(
                    "%s, options %s: no machine code, expected --gpu-architecture=sm_NN among them"
                            .formatted(name, options));
        }
        MemorySegment cubin = arena.allocate(bytes);
        CUBIN.check(CUBIN.call(program, cubin.address()), name);
        return cubin.toArray(JAVA_BYTE);
    }

    private static String log(long program, String name, Arena arena) {
        MemorySegment size = arena.allocate(JAVA_LONG);
        LOG_SIZE.check(LOG_SIZE.call(program, size.address()), name);
        // One zero more than the library's own, so that the text ends whatever the library counts.
        MemorySegment log = arena.allocate(size.get(JAVA_LONG, 0) + 1);
        LOG.check(LOG.call(program, log.address()), name);
        return log.getString(0).strip();
    }

    /** The address of an array of C strings. */
    private static long strings(Collection<String> texts, Arena arena) {
        MemorySegment array = arena.allocate(JAVA_LONG, texts.size());
        int i = 0;
        for (String text : texts) {
            array.setAtIndex(JAVA_LONG, i++, arena.allocateFrom(text).address());
        }
        return array.address();
    }

    @SuppressWarnings("restricted")
    private static String codeName(int code) {
        try {
            MemorySegment text = (MemorySegment) CODE_NAME.invokeExact(code);
            return text.reinterpret(Long.MAX_VALUE).getString(0);
        } catch (Throwable e) {
            throw LIBRARY.broken("nvrtcGetErrorString", e);
        }
    }
}
