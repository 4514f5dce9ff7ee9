package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.weft.ffi.ExecutableMemory;
import dev.weft.ffi.Processor;
import dev.weft.ffi.TileRegisters;
import dev.weft.gemm.code.Arguments.Name;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.IntBinaryOperator;
import java.util.function.ToIntFunction;

/**
 * The innermost loops of a product in machine code for one kind of processor. Calls check that the
 * code stays within the memory that it is given, so that a wrong size causes an exception.
 *
 * <p>The garbage collector cannot start before a call ends, so callers keep calls short.
 */
@SuppressWarnings("restricted")
public final class TileCode implements Tiles {

    /** Function, three pieces of memory, arguments. */
    private static final MethodHandle CALL =
            Linker.nativeLinker()
                    .downcallHandle(
                            FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS, ADDRESS),
                            Linker.Option.critical(false));

    private final Written written;
    private final int rows;
    private final int cols;
    private final MemorySegment[][] sums;
    private final Map<DType, MemorySegment> packs = new EnumMap<>(DType.class);

    /**
     * What a generator has written, and where in it each function begins.
     *
     * @param type the type of packed tiles and panels
     * @param depth see {@link Tiles#depth}
     * @param sums for each number of row steps, and column steps, that are wanted
     */
    record Written(
            String name,
            DType type,
            int rows,
            int cols,
            int rowStep,
            int colStep,
            int depth,
            byte[] code,
            int[][] sums,
            Map<DType, Integer> packs) {

        /**
         * Writes a sum for each part of a tile in steps, and a pack for each type.
         *
         * @param sum writes one for a number of row steps and column steps
         * @param pack writes one
         */
        static Written of(
                String name,
                int rows,
                int cols,
                int rowStep,
                int colStep,
                int depth,
                Assembler code,
                IntBinaryOperator sum,
                ToIntFunction<DType> pack) {
            int[][] sums = new int[rows / rowStep][cols / colStep];
            for (int i = 0; i < sums.length; i++) {
                for (int j = 0; j < sums[i].length; j++) {
                    sums[i][j] = sum.applyAsInt(i + 1, j + 1);
                }
            }
            Map<DType, Integer> packs = new EnumMap<>(DType.class);
            for (DType type : DType.UNSCALED) {
                packs.put(type, pack.applyAsInt(type));
            }
            return new Written(
                    name,
                    DType.FP32,
                    rows,
                    cols,
                    rowStep,
                    colStep,
                    depth,
                    code.code(),
                    sums,
                    packs);
        }
    }

    TileCode(Written written) {
        this.written = written;
        ExecutableMemory memory = ExecutableMemory.of(written.code);
        rows = written.rows;
        cols = written.cols;
        sums = new MemorySegment[written.sums.length][];
        for (int i = 0; i < sums.length; i++) {
            sums[i] = new MemorySegment[written.sums[i].length];
            for (int j = 0; j < sums[i].length; j++) {
                sums[i][j] = memory.entry(written.sums[i][j]);
            }
        }
        written.packs.forEach((type, offset) -> packs.put(type, memory.entry(offset)));
        for (DType type : packs.keySet()) {
            checkSmallProduct(type);
        }
    }

    /**
     * Multiplies two small tiles, in two calls along k, and checks the results. A first call takes
     * Java some milliseconds, which then do not count towards a product. Code that a machine does
     * not execute correctly is detected before a result depends on it. Elements are whole numbers
     * that every type holds, and their sums are exact in any order.
     */
    private void checkSmallProduct(DType typeA) {
        int depth = Tiles.BF16_STEP + 7;
        int tail = 5;
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, typeA, 2L * rows - 1, depth + tail);
            MemorySegment panel = arena.allocate(2 * panelBytes(depth), 64);
            for (int k = 0; k < depth + tail; k++) {
                for (int row = 0; row < a.rows(); row++) {
                    a.set(row, k, row + k);
                }
                int first = k < depth ? 0 : depth;
                long from = first == 0 ? 0 : panelBytes(depth);
                for (int col = 0; col < cols; col++) {
                    float value = col - 2 * k;
                    long at = from + Tiles.inPanel(type(), cols, k - first, col);
                    type().write(panel, at, value);
                }
            }
            MemorySegment packed = arena.allocate(2 * tileBytes(depth), 64);
            MemorySegment found = arena.allocate(2L * rows * cols * Float.BYTES, 64);
            Arguments arguments = new Arguments(arena.allocate(Arguments.BYTES, 8));
            multiplySmall(a, 0, depth, packed, panel, 0, found, arguments);
            multiplySmall(a, depth, tail, packed, panel, panelBytes(depth), found, arguments);
            for (int row = 0; row < 2 * rows; row++) {
                for (int col = 0; col < cols; col++) {
                    float expected = 0;
                    for (int k = 0; k < depth + tail; k++) {
                        expected += (Math.min(row, 2 * rows - 2) + k) * (col - 2 * k);
                    }
                    float sum = found.getAtIndex(JAVA_FLOAT, (long) row * cols + col);
                    if (sum != expected) {
                        throw new IllegalStateException(
                                "machine code for %s gave %s for %s at row %s, column %s of tiles"
                                        .formatted(name(), sum, expected, row, col));
                    }
                }
            }
        }
    }

    /** Multiplies two tiles, of which the second lacks a row, from column {@code k} of A on. */
    private void multiplySmall(
            Matrix a,
            int k,
            int depth,
            MemorySegment packed,
            MemorySegment panel,
            long panelFrom,
            MemorySegment sums,
            Arguments arguments) {
        long aPitch = a.rowPitch() * a.dtype().bytes();
        for (int tile = 0; tile < 2; tile++) {
            long from = a.offset((long) tile * rows, k);
            long to = tile * tileBytes(depth);
            pack(a.dtype(), a.data(), from, aPitch, rows - tile, depth, packed, to, arguments);
        }
        long pitch = (long) cols * Float.BYTES;
        sum(k > 0, packed, 0, 2, rows, depth, panel, panelFrom, cols, sums, 0, pitch, arguments);
    }

    /**
     * The code for this machine: the fastest that it can execute, or the one that the property
     * {@code weft.gemm.code} names.
     *
     * @throws IllegalStateException that says in one line why there is none
     */
    public static TileCode forThisMachine() {
        String kind = Processor.here().kind(System.getProperty("weft.gemm.code"));
        return new TileCode(
                switch (kind) {
                    case "avx512" -> X86Tiles.write(512);
                    case "avx2" -> X86Tiles.write(256);
                    default -> A64Tiles.write();
                });
    }

    /**
     * The code for bf16 with AMX, which has its own bits.
     *
     * @throws IllegalStateException that says in one line why there is none
     */
    public static TileCode amx() {
        Processor.here()
                .lacks(X86AmxTiles.FEATURES)
                .ifPresent(
                        feature -> {
                            throw new IllegalStateException(
                                    "no AMX: this processor has no " + feature);
                        });
        TileRegisters.unavailable()
                .ifPresent(
                        reason -> {
                            throw new IllegalStateException("no AMX: " + reason);
                        });
        return new TileCode(X86AmxTiles.write());
    }

    @Override
    public String name() {
        return written.name;
    }

    @Override
    public DType type() {
        return written.type;
    }

    @Override
    public int depth() {
        return written.depth;
    }

    @Override
    public int rows() {
        return rows;
    }

    @Override
    public int cols() {
        return cols;
    }

    @Override
    public int colStep() {
        return written.colStep;
    }

    @Override
    public void pack(
            DType type,
            MemorySegment a,
            long from,
            long pitch,
            int count,
            int depth,
            MemorySegment packed,
            long to,
            Arguments arguments) {
        MemorySegment function = packs.get(type);
        if (function == null) {
            throw new IllegalArgumentException(
                    "engine %s packs no %s".formatted(name(), type.label()));
        }
        check(a, from, pitch, count, (long) depth * type.bytes());
        checkTarget(packed, to, tileBytes(depth), Math.ceilDiv(count, rows), tileBytes(depth));
        arguments.set(Name.A_FROM, from);
        arguments.set(Name.C_FROM, to);
        arguments.set(Name.DEPTH, depth);
        arguments.set(Name.PITCH, pitch);
        arguments.set(Name.COUNT, count);
        call(function, a, packed, packed, arguments);
    }

    @Override
    public void sum(
            boolean resume,
            MemorySegment packed,
            long aFrom,
            int tileCount,
            int rowCount,
            int depth,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        if (tileCount > 1 && rowCount < rows) {
            throw new IllegalArgumentException(
                    "%s rows of %s tiles: expected all %s, or one tile"
                            .formatted(rowCount, tileCount, rows));
        }
        if (depth < 0) {
            throw new IllegalArgumentException("depth " + depth + ": expected 0 or more");
        }
        requireUpTo(rows, rowCount, "rows");
        int panelCount = Math.max(1, colCount / cols);
        int lastCols = colCount - (panelCount - 1) * cols;
        requireUpTo(cols, lastCols, "columns");
        int rowSteps = Math.ceilDiv(rowCount, written.rowStep);
        int colSteps = Math.ceilDiv(lastCols, written.colStep);
        long rowsWritten = (long) (tileCount - 1) * rows + (long) rowSteps * written.rowStep;
        long rowBytes =
                ((panelCount - 1L) * cols + (long) colSteps * written.colStep) * Float.BYTES;
        check(packed, aFrom, tileBytes(depth), tileCount, tileBytes(depth));
        check(panels, bFrom, panelBytes(depth), panelCount, panelBytes(depth));
        checkTarget(sums, sumsFrom, pitch, rowsWritten, rowBytes);
        arguments.set(Name.A_FROM, aFrom);
        arguments.set(Name.B_FROM, bFrom);
        arguments.set(Name.C_FROM, sumsFrom);
        arguments.set(Name.DEPTH, depth);
        arguments.set(Name.PITCH, pitch);
        arguments.set(Name.RESUME, resume ? 1 : 0);
        arguments.set(Name.COUNT, tileCount);
        arguments.set(Name.PANELS, panelCount);
        call(this.sums[rowSteps - 1][colSteps - 1], packed, panels, sums, arguments);
    }

    private static void requireUpTo(int most, int count, String what) {
        if (count < 1 || count > most) {
            throw new IllegalArgumentException(
                    "%s %s of a tile: expected 1 to %s".formatted(count, what, most));
        }
    }

    private static void checkTarget(
            MemorySegment memory, long from, long pitch, long count, long rowBytes) {
        if (memory.isReadOnly()) {
            throw new IllegalArgumentException("memory for results is read-only");
        }
        check(memory, from, pitch, count, rowBytes);
    }

    private static void check(
            MemorySegment memory, long from, long pitch, long count, long rowBytes) {
        if (!memory.isNative()) {
            throw new IllegalArgumentException("memory on the heap: expected memory off it");
        }
        if (count < 1 || pitch < 0 || rowBytes < 0) {
            throw new IllegalArgumentException(
                    "%s rows of %s bytes, %s bytes apart".formatted(count, rowBytes, pitch));
        }
        // No sums or products: they could be larger than a long.
        long room = memory.byteSize() - rowBytes;
        if (from < 0 || from > room || count > 1 && pitch > (room - from) / (count - 1)) {
            throw new IllegalArgumentException(
                    "%s rows of %s bytes, %s bytes apart, from byte %s on: memory has %s"
                            .formatted(count, rowBytes, pitch, from, memory.byteSize()));
        }
    }

    private static void call(
            MemorySegment function,
            MemorySegment a,
            MemorySegment b,
            MemorySegment c,
            Arguments arguments) {
        try {
            CALL.invokeExact(function, a, b, c, arguments.inMemory());
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("a call of machine code failed", e);
        }
    }
}
