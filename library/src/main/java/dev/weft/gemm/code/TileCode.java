package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.weft.ffi.ExecutableMemory;
import dev.weft.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/**
 * The innermost loops of a product in machine code for one kind of processor. Calls check that what
 * the code touches lies in the memory that it is given, so that a wrong size ends in an exception.
 *
 * <p>A call does not let the garbage collector begin before it ends, so callers keep calls short.
 */
@SuppressWarnings("restricted")
public final class TileCode implements Tiles {

    /** Function, three pieces of memory, arguments. */
    private static final MethodHandle CALL =
            Linker.nativeLinker()
                    .downcallHandle(
                            FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS, ADDRESS),
                            Linker.Option.critical(false));

    private final String name;
    private final int rows;
    private final int cols;
    private final int rowStep;
    private final int colStep;
    private final MemorySegment[][] sums;
    private final Map<DType, MemorySegment> packs = new EnumMap<>(DType.class);

    /** What a generator has written, and where in it each function begins. */
    record Written(
            String name,
            int rows,
            int cols,
            int rowStep,
            int colStep,
            byte[] code,
            int[][] sums,
            Map<DType, Integer> packs) {}

    TileCode(Written written) {
        ExecutableMemory memory = ExecutableMemory.of(written.code);
        name = written.name;
        rows = written.rows;
        cols = written.cols;
        rowStep = written.rowStep;
        colStep = written.colStep;
        sums = new MemorySegment[written.sums.length][];
        for (int i = 0; i < sums.length; i++) {
            sums[i] = new MemorySegment[written.sums[i].length];
            for (int j = 0; j < sums[i].length; j++) {
                sums[i][j] = memory.entry(written.sums[i][j]);
            }
        }
        written.packs.forEach((type, offset) -> packs.put(type, memory.entry(offset)));
        tryOut();
    }

    /**
     * Multiplies one small tile and compares it with what it should be. A first call takes Java
     * some milliseconds, which then are no part of a product, and code that a machine does not
     * execute as it should is noticed before a result depends on it.
     */
    private void tryOut() {
        int depth = 7;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = arena.allocate(JAVA_FLOAT, (long) rows * depth);
            MemorySegment packed = arena.allocate(JAVA_FLOAT, (long) rows * depth);
            MemorySegment panel = arena.allocate(JAVA_FLOAT, (long) cols * depth);
            MemorySegment sums = arena.allocate(JAVA_FLOAT, (long) rows * cols);
            for (int k = 0; k < depth; k++) {
                for (int row = 0; row < rows; row++) {
                    a.setAtIndex(JAVA_FLOAT, (long) row * depth + k, row + k);
                }
                for (int col = 0; col < cols; col++) {
                    panel.setAtIndex(JAVA_FLOAT, (long) k * cols + col, col - 2 * k);
                }
            }
            MemorySegment arguments = arena.allocate(ARGUMENT_BYTES, Long.BYTES);
            long pitch = (long) cols * Float.BYTES;
            pack(DType.FP32, a, 0, (long) depth * 4, rows, depth, packed, 0, arguments);
            sum(false, packed, 0, 1, rows, depth, panel, 0, cols, sums, 0, pitch, arguments);
            for (int row = 0; row < rows; row++) {
                for (int col = 0; col < cols; col++) {
                    float expected = 0;
                    for (int k = 0; k < depth; k++) {
                        expected += (row + k) * (col - 2 * k);
                    }
                    float found = sums.getAtIndex(JAVA_FLOAT, (long) row * cols + col);
                    if (found != expected) {
                        throw new IllegalStateException(
                                "machine code for %s gave %s for %s at row %s, column %s of a tile"
                                        .formatted(name, found, expected, row, col));
                    }
                }
            }
        }
    }

    /**
     * The code for this machine.
     *
     * @throws IllegalStateException that says in one line why there is none
     */
    public static TileCode forThisMachine() {
        Processor processor = Processor.here();
        if (processor.arch().equals("aarch64")) {
            return new TileCode(A64Tiles.write());
        }
        if (processor.hasAvx512()) {
            return new TileCode(X86Tiles.write(512));
        }
        if (processor.hasAvx2()) {
            return new TileCode(X86Tiles.write(256));
        }
        throw new IllegalStateException(
                "Weft writes machine code for aarch64 and for x86_64 with AVX2, not for "
                        + processor.arch()
                        + (processor.arch().equals("amd64") ? " without" : ""));
    }

    @Override
    public String name() {
        return name;
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
        return colStep;
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
            MemorySegment arguments) {
        Objects.checkIndex(count - 1, rows);
        check(a, from, pitch, count, (long) depth * type.bytes());
        check(packed, to, 0, 1, (long) depth * rows * Float.BYTES);
        put(arguments, 0, from);
        put(arguments, 1, to);
        put(arguments, 2, depth);
        put(arguments, 3, pitch);
        put(arguments, 4, count);
        call(packs.get(type), a, packed, packed, arguments);
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
            MemorySegment arguments) {
        int rowSteps = Math.ceilDiv(rowCount, rowStep);
        int colSteps = Math.ceilDiv(colCount, colStep);
        long rowsWritten = (long) (tileCount - 1) * rows + (long) rowSteps * rowStep;
        check(packed, aFrom, 0, 1, (long) tileCount * rows * depth * Float.BYTES);
        check(panels, bFrom, 0, 1, (long) cols * depth * Float.BYTES);
        check(sums, sumsFrom, pitch, rowsWritten, (long) colSteps * colStep * Float.BYTES);
        put(arguments, 0, aFrom);
        put(arguments, 1, bFrom);
        put(arguments, 2, sumsFrom);
        put(arguments, 3, depth);
        put(arguments, 4, pitch);
        put(arguments, 5, resume ? 1 : 0);
        put(arguments, 6, tileCount);
        call(this.sums[rowSteps - 1][colSteps - 1], packed, panels, sums, arguments);
    }

    private static void check(
            MemorySegment memory, long from, long pitch, long count, long rowBytes) {
        if (count < 1 || pitch < 0) {
            throw new IllegalArgumentException(count + " rows, " + pitch + " bytes apart");
        }
        long bytes = Math.addExact(Math.multiplyExact(count - 1, pitch), rowBytes);
        Objects.checkFromIndexSize(from, bytes, memory.byteSize());
    }

    private static void put(MemorySegment arguments, int index, long value) {
        arguments.setAtIndex(JAVA_LONG, index, value);
    }

    private static void call(
            MemorySegment function,
            MemorySegment a,
            MemorySegment b,
            MemorySegment c,
            MemorySegment arguments) {
        try {
            CALL.invokeExact(function, a, b, c, arguments);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("a call of machine code failed", e);
        }
    }
}
