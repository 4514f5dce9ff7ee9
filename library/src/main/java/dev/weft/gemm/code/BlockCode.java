package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.weft.ffi.ExecutableMemory;
import dev.weft.ffi.Processor;
import dev.weft.ffi.TileRegisters;
import dev.weft.gemm.code.Arguments.Name;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.ToIntBiFunction;

/**
 * A {@link BlockKernel} in machine code. Calls check that the code stays within the memory that it
 * is given. When it is made, it is compared with {@link ScalarBlocks}.
 *
 * <p>The garbage collector cannot start before a call ends, so callers keep calls short.
 */
@SuppressWarnings("restricted")
public final class BlockCode implements BlockKernel {

    private static final MethodHandle CALL =
            Linker.nativeLinker()
                    .downcallHandle(
                            FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS, ADDRESS),
                            Linker.Option.critical(false));

    /** Bytes behind packed rows that may be read, but are not used. */
    public static final int SLACK_BYTES = 16;

    /** Of k and panels of a call. */
    private static final int MOST = 1 << 20;

    private final Written written;
    private final Map<BlockType, MemorySegment[]> sums = new EnumMap<>(BlockType.class);

    /**
     * What a generator has written.
     *
     * @param sums where the function for each type and number of rows begins
     */
    record Written(
            String name,
            int rows,
            int wholeRowsFrom,
            int cols,
            boolean isUnsigned,
            byte[] code,
            Map<BlockType, int[]> sums) {

        /**
         * @param sum writes a function for a layout and a number of rows
         */
        static Written of(
                String name,
                int rows,
                int wholeRowsFrom,
                int cols,
                boolean isUnsigned,
                Assembler code,
                ToIntBiFunction<BlockPanels, Integer> sum) {
            Map<BlockType, int[]> sums = new EnumMap<>(BlockType.class);
            for (BlockType type : BlockType.MULTIPLIED) {
                int[] entries = new int[rows];
                for (int count = 1; count <= rows; count++) {
                    entries[count - 1] =
                            sum.applyAsInt(new BlockPanels(type, cols, isUnsigned), count);
                }
                sums.put(type, entries);
            }
            return new Written(name, rows, wholeRowsFrom, cols, isUnsigned, code.code(), sums);
        }
    }

    BlockCode(Written written) {
        this.written = written;
        ExecutableMemory memory = ExecutableMemory.of(written.code);
        written.sums.forEach(
                (type, entries) -> {
                    MemorySegment[] functions = new MemorySegment[entries.length];
                    for (int i = 0; i < entries.length; i++) {
                        functions[i] = memory.entry(entries[i]);
                    }
                    sums.put(type, functions);
                });
        for (BlockType type : BlockType.MULTIPLIED) {
            for (int rows = 1; rows <= written.rows; rows++) {
                checkSmallProduct(type, rows, rows == written.rows ? 2 : 1);
            }
        }
    }

    /**
     * The code for this machine: the fastest that it can execute, or the one that the property
     * {@code weft.gemm.code} names.
     *
     * @throws IllegalStateException that says in one line why there is none
     */
    public static BlockCode forThisMachine() {
        Processor here = Processor.here();
        String wanted = System.getProperty("weft.gemm.code");
        String kind = here.kind(wanted);
        if (kind.equals("neon")) {
            if (!here.features().contains("asimddp")) {
                throw new IllegalStateException("this processor has no asimddp");
            }
            return new BlockCode(A64Blocks.write());
        }
        if (kind.equals("avx512") && here.lacks(X86Blocks.VNNI).isEmpty()) {
            boolean tiles =
                    wanted == null
                            && here.lacks(X86TileBlocks.FEATURES).isEmpty()
                            && TileRegisters.unavailable().isEmpty();
            return new BlockCode(tiles ? X86TileBlocks.write() : X86Blocks.avx512());
        }
        if (kind.equals("avx512") && here.lacks(X86Blocks.BYTES_512).isEmpty()) {
            return new BlockCode(X86Blocks.avx512bw());
        }
        return new BlockCode(
                here.lacks(X86Blocks.VNNI_256).isEmpty()
                        ? X86Blocks.avxVnni(new X86Assembler(256))
                        : X86Blocks.avx2());
    }

    /** Compares panels, in two calls along k, with the scalar kernel, to the bit. */
    private void checkSmallProduct(BlockType type, int rows, int panelCount) {
        long cols = (long) panelCount * cols();
        BlockPanels layout = panels(type);
        long k = 2L * type.elements();
        try (Arena arena = Arena.ofConfined()) {
            Matrix b = Matrix.allocate(arena, DType.FP32, cols, k);
            int[] next = {rows};
            b.fill(() -> (next[0] = next[0] * 75 % 65537) / 9000f - 3);
            QuantizedMatrix blocks = QuantizedMatrix.ofB(arena, b, true, type);
            MemorySegment panels = arena.allocate(layout.bytes(k, cols), 64);
            layout.write(blocks, 0, cols, panels);
            long steps = k / BlockPanels.STEP;
            int stepBytes = BlockPanels.rowStepBytes(rows);
            MemorySegment a = arena.allocate(steps * stepBytes + SLACK_BYTES, 64);
            for (long step = 0; step < steps; step++) {
                fillRows(
                        layout,
                        rows,
                        rows >= wholeRowsFrom(),
                        a.asSlice(step * stepBytes, stepBytes),
                        next);
            }
            long pitch = cols * Float.BYTES;
            MemorySegment found = arena.allocate(rows * pitch, 64);
            MemorySegment expected = arena.allocate(rows * pitch, 64);
            Arguments arguments = new Arguments(arena.allocate(Arguments.BYTES, 8));
            ScalarBlocks scalar = new ScalarBlocks(rows(), cols(), isUnsigned(), wholeRowsFrom());
            for (boolean resume : new boolean[] {false, true}) {
                sum(type, resume, k, a, 0, rows, panels, 0, panelCount, found, 0, pitch, arguments);
                scalar.sum(
                        type,
                        resume,
                        k,
                        a,
                        0,
                        rows,
                        panels,
                        0,
                        panelCount,
                        expected,
                        0,
                        pitch,
                        arguments);
            }
            long different = found.mismatch(expected);
            if (different >= 0) {
                long at = different / Float.BYTES * Float.BYTES;
                throw new IllegalStateException(
                        "machine code for %s and %s rows of %s gave %s instead of %s at row %s, column %s"
                                .formatted(
                                        name(),
                                        rows,
                                        type.label(),
                                        found.get(JAVA_FLOAT, at),
                                        expected.get(JAVA_FLOAT, at),
                                        at / pitch,
                                        at % pitch / Float.BYTES));
            }
        }
    }

    private static void fillRows(
            BlockPanels layout, int rows, boolean wholeRows, MemorySegment step, int[] next) {
        for (int row = 0; row < rows; row++) {
            int sum = 0;
            for (int i = 0; i < BlockPanels.STEP; i++) {
                next[0] = next[0] * 75 % 65537;
                // Both extremes are among them.
                int number = Math.clamp(next[0] % 300 - 150, -127, 127);
                int at = BlockPanels.inStep(rows, row, i, wholeRows);
                step.set(JAVA_BYTE, at, (byte) number);
                sum += number;
            }
            layout.writeStart(step, 0, rows, row, sum, next[0] / 70000f);
        }
    }

    @Override
    public String name() {
        return written.name;
    }

    @Override
    public int rows() {
        return written.rows;
    }

    @Override
    public int wholeRowsFrom() {
        return written.wholeRowsFrom;
    }

    @Override
    public int cols() {
        return written.cols;
    }

    @Override
    public boolean isUnsigned() {
        return written.isUnsigned;
    }

    @Override
    public void sum(
            BlockType type,
            boolean resume,
            long k,
            MemorySegment a,
            long aFrom,
            int rows,
            MemorySegment panels,
            long bFrom,
            int panelCount,
            MemorySegment target,
            long targetFrom,
            long pitch,
            Arguments arguments) {
        BlockPanels layout = panels(type);
        boolean inRange =
                rows >= 1
                        && rows <= rows()
                        && k >= 1
                        && k <= MOST
                        && k % type.elements() == 0
                        && panelCount >= 1
                        && panelCount <= MOST;
        if (!inRange || target.isReadOnly()) {
            throw new IllegalArgumentException(
                    "%s rows, %s k of %s and %s panels%s: expected 1 to %s rows, 1 to %s of the others, and whole blocks"
                            .formatted(
                                    rows,
                                    k,
                                    type.label(),
                                    panelCount,
                                    target.isReadOnly() ? " into read-only memory" : "",
                                    rows(),
                                    MOST));
        }
        long steps = k / BlockPanels.STEP;
        long rowBytes = (long) panelCount * cols() * Float.BYTES;
        TileCode.check(a, aFrom, 0, 1, steps * BlockPanels.rowStepBytes(rows) + SLACK_BYTES);
        TileCode.check(panels, bFrom, 0, 1, panelCount * layout.panelBytes(k));
        TileCode.check(target, targetFrom, pitch, rows, rowBytes);
        if ((panels.address() + bFrom) % 64 != 0) {
            throw new IllegalArgumentException(
                    "panels at byte %s: expected a multiple of 64".formatted(bFrom));
        }
        arguments.set(Name.A_FROM, aFrom);
        arguments.set(Name.B_FROM, bFrom);
        arguments.set(Name.C_FROM, targetFrom);
        arguments.set(Name.DEPTH, steps);
        arguments.set(Name.PITCH, pitch);
        arguments.set(Name.RESUME, resume ? 1 : 0);
        arguments.set(Name.COUNT, layout.numberBytes(k));
        arguments.set(Name.PANELS, panelCount);
        try {
            CALL.invokeExact(sums.get(type)[rows - 1], a, panels, target, arguments.inMemory());
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("a call of machine code failed", e);
        }
    }
}
