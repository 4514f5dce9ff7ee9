package dev.weft.ffi;

import static dev.weft.ffi.CudaLibrary.ask;
import static dev.weft.ffi.CudaLibrary.pair;
import static dev.weft.ffi.CudaLibrary.scratch;
import static dev.weft.ffi.CudaLibrary.words;
import static dev.weft.ffi.CudaLibrary.wordsInScratch;
import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;

/**
 * Compiled kernels: loading and launch. What is loaded stays as long as its context. Any thread
 * with a current context may call; {@link #launch} allocates nothing on the Java heap.
 */
public final class CudaModules {

    /** Element types, for {@link #encodeTensorMap}. */
    public static final int UINT8 = 0;

    public static final int UINT16 = 1;

    public static final int FLOAT32 = 7;

    /** Bytes of a tensor map. */
    public static final int TENSOR_MAP_BYTES = 128;

    private static final int MAX_DYNAMIC_SHARED_BYTES = 8;
    private static final int TENSOR_MAP_ALIGNMENT = 64;
    private static final int SWIZZLE_64B = 2;
    private static final int SWIZZLE_128B = 3;

    /** Promotion of what a load brings into L2, for {@link #encodeTensorMap}. */
    public static final int L2_NONE = 0;

    public static final int L2_256B = 3;

    private static final int CLUSTER_DIMENSION = 4;

    /** A tensor map's arrays in scratch memory. */
    private static final long SIZES = 0;

    private static final long STRIDES = 16;
    private static final long BOX = 24;
    private static final long ELEMENT_STRIDES = 32;

    /**
     * A launch's one CUlaunchAttribute in scratch memory, of 72 bytes, behind the CUlaunchConfig.
     */
    private static final int ATTRIBUTE_WORD = 8;

    private static final long ATTRIBUTE_END = 8L * ATTRIBUTE_WORD + 72;

    private static final BoundLibrary DRIVER = CudaLibrary.DRIVER;
    private static final NativeFunction LOAD = DRIVER.function("cuModuleLoadData", "PP");
    private static final NativeFunction FUNCTION = DRIVER.function("cuModuleGetFunction", "PPP");
    private static final NativeFunction SET_ATTRIBUTE =
            DRIVER.function("cuFuncSetAttribute", "PII");
    private static final NativeFunction LAUNCH_KERNEL = DRIVER.function("cuLaunchKernelEx", "PPPP");
    private static final NativeFunction MAX_CLUSTERS =
            DRIVER.function("cuOccupancyMaxActiveClusters", "PPP");
    private static final NativeFunction ENCODE =
            DRIVER.function("cuTensorMapEncodeTiled", "PIIPPPPPIIII");

    private CudaModules() {}

    /**
     * @param image a cubin, a fat binary or PTX text, native or on the heap; not used afterwards
     */
    public static long loadData(MemorySegment image) {
        try (Arena arena = Arena.ofConfined()) {
            // A copy, for the driver wants an aligned image, and a zero at the end of PTX.
            MemorySegment copy = arena.allocate(image.byteSize() + 1, 64);
            MemorySegment.copy(image, 0, copy, 0, image.byteSize());
            return ask(LOAD, "image of " + image.byteSize() + " bytes", copy.address());
        }
    }

    /**
     * @param name as the image knows it; without {@code extern "C"} that is the mangled name
     */
    public static long function(long module, String name) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = scratch();
            int code = FUNCTION.call(out.address(), module, arena.allocateFrom(name).address());
            FUNCTION.check(code, "module " + hex(module) + ", " + name);
            return out.get(JAVA_LONG, 0);
        }
    }

    /** Lets a kernel be launched with more dynamic shared memory than the usual 48 KiB. */
    public static void setMaxDynamicShared(long function, int bytes) {
        String arguments = "%#x, dynamic shared memory of %3$d bytes";
        SET_ATTRIBUTE.run(arguments, function, MAX_DYNAMIC_SHARED_BYTES, bytes);
    }

    /**
     * Queues a kernel on a stream.
     *
     * @param params addresses of the kernel's arguments, one each; read before this returns
     * @param clusterX blocks per cluster along x, of which {@code gridX} is a multiple; 1 for none
     */
    public static void launch(
            long function,
            int gridX,
            int gridY,
            int blockX,
            int sharedBytes,
            long stream,
            MemorySegment params,
            int clusterX) {
        long launch = configuration(gridX, gridY, blockX, sharedBytes, stream, clusterX);
        int code = LAUNCH_KERNEL.call(launch, function, params.address(), 0);
        Reference.reachabilityFence(params);
        if (code != 0) {
            throw LAUNCH_KERNEL.failed(
                    code, describe(function, gridX, gridY, blockX, sharedBytes, clusterX));
        }
    }

    /** How many clusters of such a launch the device can hold at once. */
    public static int maxActiveClusters(
            long function, int gridX, int gridY, int blockX, int sharedBytes, int clusterX) {
        long launch = configuration(gridX, gridY, blockX, sharedBytes, 0, clusterX);
        MemorySegment out = scratch();
        int code = MAX_CLUSTERS.call(out.address() + ATTRIBUTE_END, function, launch);
        MAX_CLUSTERS.check(code, describe(function, gridX, gridY, blockX, sharedBytes, clusterX));
        return out.get(JAVA_INT, ATTRIBUTE_END);
    }

    /**
     * Describes a matrix in device memory to the tensor memory accelerator, which swizzles rows of
     * 64 or 128 bytes; loads beyond its edges give zeros.
     *
     * @param map {@value #TENSOR_MAP_BYTES} bytes of native memory aligned to 64, overwritten
     * @param address of the first element, aligned to 16 bytes
     * @param cols elements along the inner dimension
     * @param strideBytes from one row to the next, a multiple of 16
     * @param boxCols elements of one load's row, of 64 or 128 bytes
     * @param boxRows rows of one load, 1 to 256
     * @param promotion {@link #L2_NONE} or {@link #L2_256B}
     */
    public static void encodeTensorMap(
            MemorySegment map,
            int dataType,
            long address,
            long cols,
            long rows,
            long strideBytes,
            int boxCols,
            int boxRows,
            int promotion) {
        if (!map.isNative()
                || map.byteSize() < TENSOR_MAP_BYTES
                || map.address() % TENSOR_MAP_ALIGNMENT != 0) {
            throw new IllegalArgumentException(
                    "a tensor map in " + map + ": expected 128 native bytes aligned to 64");
        }
        MemorySegment arrays = scratch();
        long at = arrays.address();
        arrays.set(JAVA_LONG, SIZES, cols);
        arrays.set(JAVA_LONG, SIZES + 8, rows);
        arrays.set(JAVA_LONG, STRIDES, strideBytes);
        arrays.set(JAVA_INT, BOX, boxCols);
        arrays.set(JAVA_INT, BOX + 4, boxRows);
        arrays.set(JAVA_INT, ELEMENT_STRIDES, 1);
        arrays.set(JAVA_INT, ELEMENT_STRIDES + 4, 1);
        ENCODE.runRarely(
                "type %%2$d, address %%4$#x, sizes [%d, %d], stride %d bytes, box [%d, %d]"
                        .formatted(cols, rows, strideBytes, boxCols, boxRows),
                map.address(),
                dataType,
                2,
                address,
                at + SIZES,
                at + STRIDES,
                at + BOX,
                at + ELEMENT_STRIDES,
                0,
                boxCols * elementBytes(dataType) == 64 ? SWIZZLE_64B : SWIZZLE_128B,
                promotion,
                0);
    }

    private static int elementBytes(int dataType) {
        return dataType == UINT8 ? 1 : dataType == UINT16 ? 2 : 4;
    }

    private static long configuration(
            int gridX, int gridY, int blockX, int sharedBytes, long stream, int clusterX) {
        // Grid and block as three numbers each, shared bytes, stream, attributes and their count.
        long[] launch = words();
        launch[0] = pair(gridX, gridY);
        launch[1] = pair(1, blockX);
        launch[2] = pair(1, 1);
        launch[3] = sharedBytes;
        launch[4] = stream;
        launch[5] = scratch().address() + 8L * ATTRIBUTE_WORD;
        launch[6] = clusterX > 1 ? 1 : 0;
        launch[ATTRIBUTE_WORD] = CLUSTER_DIMENSION;
        launch[ATTRIBUTE_WORD + 1] = pair(clusterX, 1);
        launch[ATTRIBUTE_WORD + 2] = 1;
        return wordsInScratch();
    }

    private static String describe(
            long function, int gridX, int gridY, int blockX, int sharedBytes, int clusterX) {
        return "%#x, grid %s x %s, block %s, shared %s bytes, cluster %s"
                .formatted(function, gridX, gridY, blockX, sharedBytes, clusterX);
    }
}
