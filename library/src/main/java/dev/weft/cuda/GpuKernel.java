package dev.weft.cuda;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.ffi.CudaModules;
import dev.weft.ffi.NativeCallException;
import dev.weft.ffi.Nvrtc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A kernel of your own, for what is to be done on a stream between calls of operators. It is CUDA
 * C++, compiled by NVRTC for the GPU at hand, and stays loaded as long as the process lives.
 *
 * <pre>{@code
 * GpuKernel twice = GpuKernel.compile(gpu, """
 *         extern "C" __global__ void twice(float* x, int count) {
 *             int i = blockIdx.x * blockDim.x + threadIdx.x;
 *             if (i < count) x[i] *= 2;
 *         }
 *         """, "twice").getFirst();
 * twice.launch(stream, 4, 1, 256, op.product(0), 1000);
 * }</pre>
 *
 * <p>Any thread to which the GPU is bound may use it.
 */
public final class GpuKernel {

    private static final int SLOT_BYTES = 8;

    /** Modules that are loaded, by GPU and source; they stay. */
    private static final Map<String, Long> MODULES = new HashMap<>();

    private final String name;
    private final long function;

    private GpuKernel(String name, long function) {
        this.name = name;
        this.function = function;
    }

    /**
     * Compiles kernels of one text, once for each text and GPU, and binds the GPU to this thread.
     *
     * @param source includes nothing
     * @param names of the kernels, each {@code extern "C"}
     * @return in the order of their names
     * @throws IllegalStateException if there is no NVRTC
     * @throws IllegalArgumentException with what the compiler says, if the text is wrong or has no
     *     kernel of that name
     */
    public static List<GpuKernel> compile(Gpu gpu, String source, String... names) {
        gpu.bind();
        long module;
        synchronized (MODULES) {
            module = MODULES.computeIfAbsent(gpu.ordinal() + source, key -> loaded(gpu, source));
        }
        List<GpuKernel> kernels = new ArrayList<>();
        for (String name : names) {
            try {
                kernels.add(new GpuKernel(name, CudaModules.function(module, name)));
            } catch (NativeCallException e) {
                throw new IllegalArgumentException(
                        "kernel %s: expected one that the text has as extern \"C\"".formatted(name),
                        e);
            }
        }
        return List.copyOf(kernels);
    }

    private static long loaded(Gpu gpu, String source) {
        Nvrtc.unavailable()
                .ifPresent(
                        why -> {
                            throw new IllegalStateException("no kernel can be compiled: " + why);
                        });
        List<String> options = List.of("--gpu-architecture=" + gpu.architecture(), "--std=c++17");
        byte[] code;
        try {
            code = Nvrtc.compile("kernels.cu", source, Map.of(), options);
        } catch (NativeCallException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
        return CudaModules.loadData(MemorySegment.ofArray(code));
    }

    /**
     * Queues a launch of {@code blocksX} x {@code blocksY} thread blocks; nothing if there are none
     * in one direction.
     *
     * @param arguments the kernel's, in order, all of them and of its types, which nobody can
     *     check: an {@link Integer}, {@link Long}, {@link Float} or {@link Double}, or a {@link
     *     DeviceMatrix} for the address of its first element
     */
    public void launch(
            GpuStream stream, int blocksX, int blocksY, int threads, Object... arguments) {
        if (blocksX == 0 || blocksY == 0) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment values = arena.allocate(SLOT_BYTES * Math.max(1L, arguments.length), 16);
            MemorySegment pointers = arena.allocate(SLOT_BYTES * Math.max(1L, arguments.length), 8);
            for (int i = 0; i < arguments.length; i++) {
                put(values, (long) SLOT_BYTES * i, arguments[i]);
                pointers.setAtIndex(JAVA_LONG, i, values.address() + (long) SLOT_BYTES * i);
            }
            CudaModules.launch(
                    function, blocksX, blocksY, threads, 0, stream.handle(), pointers, 1);
        }
    }

    private void put(MemorySegment values, long at, Object argument) {
        switch (Objects.requireNonNull(argument, "argument")) {
            case Integer value -> values.set(JAVA_INT, at, value);
            case Long value -> values.set(JAVA_LONG, at, value);
            case Float value -> values.set(JAVA_FLOAT, at, value);
            case Double value -> values.set(JAVA_DOUBLE, at, value);
            case DeviceMatrix matrix -> values.set(JAVA_LONG, at, matrix.address());
            default ->
                    throw new IllegalArgumentException(
                            "argument %s of kernel %s: expected an Integer, Long, Float, Double or DeviceMatrix"
                                    .formatted(argument, name));
        }
    }
}
