package dev.weft.ffi;

import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * cublasLt's product of fp16, bf16 or scaled e4m3 matrices, summed in fp32. The library is loaded
 * when this class is first used; if that fails, every use reports the reason. Any thread with a
 * current context may call. Each context gets one library handle, which lives as long as the
 * process: the context must too.
 */
public final class CublasLt {

    private static final int COMPUTE_FP32 = 68;
    private static final int FP32 = 0;
    private static final int FP16 = 2;
    private static final int BF16 = 14;
    private static final int E4M3 = 28;
    private static final int TRANSPOSE_A = 3;
    private static final int FIRST_SCALES = 17;
    private static final int SECOND_SCALES = 18;
    private static final int FIRST_SCALE_MODE = 31;
    private static final int SECOND_SCALE_MODE = 32;

    /** One for each row of A and column of B. */
    private static final int OUTER_SCALES = 3;

    /** One for each 128 columns of a row. */
    private static final int VECTOR_SCALES = 4;

    /** One for each 128 x 128. */
    private static final int BLOCK_SCALES = 5;

    private static final int MAX_WORKSPACE = 1;
    private static final int REDUCTION_SCHEMES = 3;

    /** Parts of a sum are added in fp32, not in the type of C, which would lose bits. */
    private static final int REDUCE_IN_FP32 = 2;

    private static final int FIRST_MIN_ALIGNMENT = 5;
    private static final int MATRICES = 4;
    private static final int NOT_SUPPORTED = 15;

    private static final BoundLibrary LIBRARY =
            NativeLibraries.bind(
                    "libcublasLt",
                    "weft.cuda.cublaslt",
                    List.of("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"),
                    true,
                    "it comes with the CUDA toolkit 12 or newer and with the Python package"
                            + " nvidia-cublas",
                    CublasLt::codeName);
    private static final MethodHandle VERSION =
            LIBRARY.bind("cublasLtGetVersion", FunctionDescriptor.of(JAVA_LONG));
    private static final NativeFunction CREATE = LIBRARY.function("cublasLtCreate", "P");
    private static final NativeFunction CREATE_PRODUCT =
            LIBRARY.function("cublasLtMatmulDescCreate", "PII");
    private static final NativeFunction SET_PRODUCT =
            LIBRARY.function("cublasLtMatmulDescSetAttribute", "PIPP");
    private static final NativeFunction DESTROY_PRODUCT =
            LIBRARY.function("cublasLtMatmulDescDestroy", "P");
    private static final NativeFunction CREATE_LAYOUT =
            LIBRARY.function("cublasLtMatrixLayoutCreate", "PIPPP");
    private static final NativeFunction DESTROY_LAYOUT =
            LIBRARY.function("cublasLtMatrixLayoutDestroy", "P");
    private static final NativeFunction CREATE_PREFERENCE =
            LIBRARY.function("cublasLtMatmulPreferenceCreate", "P");
    private static final NativeFunction SET_PREFERENCE =
            LIBRARY.function("cublasLtMatmulPreferenceSetAttribute", "PIPP");
    private static final NativeFunction DESTROY_PREFERENCE =
            LIBRARY.function("cublasLtMatmulPreferenceDestroy", "P");
    private static final NativeFunction HEURISTICS =
            LIBRARY.function("cublasLtMatmulAlgoGetHeuristic", "PPPPPPPIPP");
    private static final NativeFunction MATMUL = LIBRARY.function("cublasLtMatmul", "P".repeat(16));

    private static final ConcurrentHashMap<Long, Long> HANDLES = new ConcurrentHashMap<>();

    private CublasLt() {}

    /** Why cublasLt cannot be used here and how to get it, or empty if it can be used. */
    public static Optional<String> unavailable() {
        return LIBRARY.unavailable();
    }

    /** For example 130000 for 13.0.0. */
    public static long version() {
        try {
            return (long) VERSION.invokeExact();
        } catch (Throwable e) {
            throw LIBRARY.broken("cublasLtGetVersion", e);
        }
    }

    /**
     * Prepares C = A x B, all of them row-major on the current context's device, where A is m x k
     * and B is k x n, or n x k if it is kept transposed. Pitches count elements from one row to the
     * next.
     *
     * @param bf16 whether A and B are bf16, else fp16
     * @param fp32Out whether C is fp32, else of the type of A and B
     * @param workspaceBytes device memory that each run may use
     * @param candidates how many ways of computing it to ask for at most, likely the best first
     */
    public static Product prepare(
            boolean bf16,
            boolean fp32Out,
            long m,
            long n,
            long k,
            long aPitch,
            boolean bTransposed,
            long bPitch,
            long cPitch,
            long workspaceBytes,
            int candidates) {
        String shape =
                "%s in, %s out, m %d, n %d, k %d, pitches A %d, B %d%s, C %d, workspace %d bytes"
                        .formatted(
                                bf16 ? "bf16" : "fp16",
                                fp32Out ? "fp32" : "the same",
                                m,
                                n,
                                k,
                                aPitch,
                                bPitch,
                                bTransposed ? " (transposed)" : "",
                                cPitch,
                                workspaceBytes);
        require(m > 0 && n > 0 && k > 0, shape + ": expected m, n and k of at least 1");
        require(
                aPitch >= k && bPitch >= (bTransposed ? k : n) && cPitch >= n,
                shape + ": expected pitches of at least a row");
        require(workspaceBytes >= 0, shape + ": expected a workspace of at least 0");
        require(candidates > 0, candidates + " candidates: expected at least 1");
        int type = bf16 ? BF16 : FP16;
        Product product = new Product(shape, workspaceBytes, handle());
        try {
            // Row-major X is column-major X^T in the same memory, so the library is asked for
            // C^T = B^T x A^T: its first operand is B, its second A.
            product.describe(bTransposed);
            product.first = product.layout(type, bTransposed ? k : n, bTransposed ? n : k, bPitch);
            product.second = product.layout(type, k, m, aPitch);
            product.result = product.layout(fp32Out ? FP32 : type, n, m, cPitch);
            long outBytes = fp32Out ? Float.BYTES : Short.BYTES;
            product.choose(
                    candidates,
                    alignment(bPitch * Short.BYTES),
                    alignment(aPitch * Short.BYTES),
                    alignment(cPitch * outBytes));
            return product;
        } catch (RuntimeException e) {
            product.close();
            throw e;
        }
    }

    /**
     * Prepares C = A x B of e4m3 matrices with scales, C of bf16, B kept transposed, m x k and n x
     * k without gaps. Sums are promoted, as without fast accumulation.
     *
     * @param aPitch bytes from one row of A to the next
     * @param aScales device memory: one for each row, or by 128 columns and then by row
     * @param bScales device memory: one for each column of C, or by 128 of them and then by 128 of
     *     K
     * @param byBlock whether scales are those of 1 x 128 of A and 128 x 128 of B
     */
    public static Product prepareScaled(
            long m,
            long n,
            long k,
            long aPitch,
            long aScales,
            long bScales,
            boolean byBlock,
            long workspaceBytes,
            int candidates) {
        String shape =
                "e4m3 in with scales by %s, bf16 out, m %d, n %d, k %d, pitch of A %d"
                        .formatted(byBlock ? "block" : "row", m, n, k, aPitch);
        Product product = new Product(shape, workspaceBytes, handle());
        try {
            product.describe(true);
            product.scale(
                    FIRST_SCALES, bScales, FIRST_SCALE_MODE, byBlock ? BLOCK_SCALES : OUTER_SCALES);
            product.scale(
                    SECOND_SCALES,
                    aScales,
                    SECOND_SCALE_MODE,
                    byBlock ? VECTOR_SCALES : OUTER_SCALES);
            product.first = product.layout(E4M3, k, n, k);
            product.second = product.layout(E4M3, k, m, aPitch);
            product.result = product.layout(BF16, n, m, n);
            product.choose(candidates, alignment(k), alignment(aPitch), alignment(n * Short.BYTES));
            return product;
        } catch (RuntimeException e) {
            product.close();
            throw e;
        }
    }

    /** What every row's address is a multiple of, as far as kernels care. */
    private static int alignment(long pitchBytes) {
        return (int) Math.min(16, Long.lowestOneBit(pitchBytes));
    }

    private static long handle() {
        long context = CudaDevices.current();
        if (context == 0) {
            throw new IllegalStateException(
                    "libcublasLt: this thread has no context, call CudaDevices.makeCurrent first");
        }
        return HANDLES.computeIfAbsent(
                context,
                c -> {
                    try (Arena arena = Arena.ofConfined()) {
                        MemorySegment out = arena.allocate(JAVA_LONG);
                        CREATE.check(CREATE.call(out.address()), "context " + hex(c));
                        return out.get(JAVA_LONG, 0);
                    }
                });
    }

    private static String codeName(int code) {
        return switch (code) {
            case 1 -> "CUBLAS_STATUS_NOT_INITIALIZED";
            case 3 -> "CUBLAS_STATUS_ALLOC_FAILED";
            case 7 -> "CUBLAS_STATUS_INVALID_VALUE";
            case 8 -> "CUBLAS_STATUS_ARCH_MISMATCH";
            case 11 -> "CUBLAS_STATUS_MAPPING_ERROR";
            case 13 -> "CUBLAS_STATUS_EXECUTION_FAILED";
            case 14 -> "CUBLAS_STATUS_INTERNAL_ERROR";
            case NOT_SUPPORTED -> "CUBLAS_STATUS_NOT_SUPPORTED";
            default -> "(a status that Weft has no name for)";
        };
    }

    private static void require(boolean good, String message) {
        if (!good) {
            throw new IllegalArgumentException(message);
        }
    }

    /**
     * A prepared product. Any thread with the same current context may run it, several at once with
     * different workspaces; it is closed once, after the last run.
     */
    public static final class Product implements AutoCloseable {

        /** A cublasLtMatmulHeuristicResult_t: algorithm, workspace's size, state, and more. */
        private static final long RESULT_BYTES = 96;

        private static final long STATE = 72;

        private final Arena arena = Arena.ofShared();
        private final String shape;
        private final long workspaceBytes;
        private final long handle;
        private final MemorySegment alpha = arena.allocateFrom(JAVA_FLOAT, 1f);
        private final MemorySegment beta = arena.allocateFrom(JAVA_FLOAT, 0f);
        private final MemorySegment place = arena.allocate(JAVA_LONG);
        private MemorySegment algorithms;
        private int candidates;
        private long description;
        private long first;
        private long second;
        private long result;

        private Product(String shape, long workspaceBytes, long handle) {
            this.shape = shape;
            this.workspaceBytes = workspaceBytes;
            this.handle = handle;
        }

        /** How many ways of computing it there are. */
        public int candidates() {
            return candidates;
        }

        /**
         * Queues the product on a stream; allocates nothing on the Java heap. Matrices are aligned
         * to 16 bytes, or to the largest power of two that divides their pitch in bytes.
         *
         * @param candidate from 0 to {@link #candidates} - 1
         * @param workspace device memory of as many bytes as prepared for, aligned to 256; runs
         *     that may overlap need one each
         */
        public void run(int candidate, long a, long b, long c, long workspace, long stream) {
            if (candidate < 0 || candidate >= candidates || !arena.scope().isAlive()) {
                throw refused(candidate);
            }
            int code;
            try {
                code =
                        (int)
                                MATMUL.handle()
                                        .invokeExact(
                                                handle,
                                                description,
                                                alpha.address(),
                                                b,
                                                first,
                                                a,
                                                second,
                                                beta.address(),
                                                c,
                                                result,
                                                c,
                                                result,
                                                algorithms.address() + candidate * RESULT_BYTES,
                                                workspace,
                                                workspaceBytes,
                                                stream);
            } catch (Throwable e) {
                throw MATMUL.broken(e);
            }
            if (code != 0) {
                throw MATMUL.failed(
                        code,
                        "candidate %d, A %#x, B %#x, C %#x, workspace %#x, stream %#x, %s"
                                .formatted(candidate, a, b, c, workspace, stream, shape));
            }
        }

        /** Nothing may be queued with it afterwards; what is queued already is not disturbed. */
        @Override
        public void close() {
            if (!arena.scope().isAlive()) {
                return;
            }
            destroy(DESTROY_LAYOUT, result);
            destroy(DESTROY_LAYOUT, second);
            destroy(DESTROY_LAYOUT, first);
            destroy(DESTROY_PRODUCT, description);
            arena.close();
        }

        private RuntimeException refused(int candidate) {
            return arena.scope().isAlive()
                    ? new IllegalArgumentException(
                            "candidate " + candidate + ": expected 0 to " + (candidates - 1))
                    : new IllegalStateException("a closed product cannot run: " + shape);
        }

        private void describe(boolean transposeFirst) {
            CREATE_PRODUCT.check(CREATE_PRODUCT.call(place.address(), COMPUTE_FP32, FP32), shape);
            description = place.get(JAVA_LONG, 0);
            place.set(JAVA_INT, 0, transposeFirst ? 1 : 0);
            long size = Integer.BYTES;
            int code = SET_PRODUCT.call(description, TRANSPOSE_A, place.address(), size);
            SET_PRODUCT.check(code, "transpose " + transposeFirst + ", " + shape);
        }

        private void scale(int attribute, long scales, int modeAttribute, int mode) {
            place.set(JAVA_LONG, 0, scales);
            int code = SET_PRODUCT.call(description, attribute, place.address(), (long) Long.BYTES);
            SET_PRODUCT.check(code, "scales, " + shape);
            place.set(JAVA_INT, 0, mode);
            long size = Integer.BYTES;
            code = SET_PRODUCT.call(description, modeAttribute, place.address(), size);
            SET_PRODUCT.check(code, "scale mode " + mode + ", " + shape);
        }

        private long layout(int type, long rows, long columns, long pitch) {
            int code = CREATE_LAYOUT.call(place.address(), type, rows, columns, pitch);
            CREATE_LAYOUT.check(code, rows + " x " + columns + ", pitch " + pitch);
            return place.get(JAVA_LONG, 0);
        }

        private void choose(int atMost, int firstAlign, int secondAlign, int resultAlign) {
            CREATE_PREFERENCE.check(CREATE_PREFERENCE.call(place.address()), shape);
            long preference = place.get(JAVA_LONG, 0);
            try {
                place.set(JAVA_LONG, 0, workspaceBytes);
                prefer(preference, MAX_WORKSPACE, Long.BYTES);
                place.set(JAVA_INT, 0, REDUCE_IN_FP32);
                prefer(preference, REDUCTION_SCHEMES, Integer.BYTES);
                int[] alignments = {firstAlign, secondAlign, resultAlign, resultAlign};
                for (int i = 0; i < MATRICES; i++) {
                    place.set(JAVA_INT, 0, alignments[i]);
                    prefer(preference, FIRST_MIN_ALIGNMENT + i, Integer.BYTES);
                }
                algorithms = arena.allocate(atMost * RESULT_BYTES, Long.BYTES);
                int code =
                        HEURISTICS.callRarely(
                                handle,
                                description,
                                first,
                                second,
                                result,
                                result,
                                preference,
                                atMost,
                                algorithms.address(),
                                place.address());
                HEURISTICS.check(code, shape);
            } finally {
                DESTROY_PREFERENCE.check(DESTROY_PREFERENCE.call(preference), shape);
            }
            keepUsable(place.get(JAVA_INT, 0));
        }

        private void prefer(long preference, int attribute, long bytes) {
            int code = SET_PREFERENCE.call(preference, attribute, place.address(), bytes);
            SET_PREFERENCE.check(code, "attribute " + attribute + ", " + shape);
        }

        /** Moves the candidates that the library can run to the front. */
        private void keepUsable(int returned) {
            for (int i = 0; i < returned; i++) {
                long from = i * RESULT_BYTES;
                if (algorithms.get(JAVA_INT, from + STATE) == 0) {
                    long to = candidates++ * RESULT_BYTES;
                    MemorySegment.copy(algorithms, from, algorithms, to, RESULT_BYTES);
                }
            }
            if (candidates == 0) {
                throw HEURISTICS.failed(NOT_SUPPORTED, shape);
            }
        }

        private void destroy(NativeFunction function, long descriptor) {
            if (descriptor != 0) {
                function.check(function.call(descriptor), shape);
            }
        }
    }
}
