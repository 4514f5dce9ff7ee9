package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.ADDRESS;

import dev.weft.ffi.ExecutableMemory;
import dev.weft.ffi.Processor;
import dev.weft.ffi.TileRegisters;
import dev.weft.gemm.code.Arguments.Name;
import dev.weft.tensor.DType;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;

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
    private final int mostRowsInPlace;
    private final Map<DType, MemorySegment[][]> sums = new EnumMap<>(DType.class);
    private final Map<DType, MemorySegment> packs = new EnumMap<>(DType.class);
    private final Map<DType, MemorySegment> widens = new EnumMap<>(DType.class);
    private final Map<DType, MemorySegment[]> inPlace = new EnumMap<>(DType.class);

    /** Writes functions one after the other, and returns where each begins. */
    interface Writer {

        /** A sum with panels of a type, for a part of a tile in steps. */
        int sum(DType panels, int rowSteps, int colSteps);

        int pack(DType a);

        int widen(DType panel);

        /** Numbers of columns with which there are sums in place, ascending. */
        int[] widthsInPlace();

        /** A sum of {@link #rowsInPlace} of A where they are, with a part of a panel of fp32. */
        int sumInPlace(DType a, int cols);

        int rowsInPlace(int cols);
    }

    /**
     * What a generator has written, and where in it each function begins.
     *
     * @param type the type of packed tiles, and of panels that are not {@link Tiles#keeps kept}
     * @param depth see {@link Tiles#depth}
     * @param sums by the type of panels, for each number of row steps, and column steps, that are
     *     wanted
     * @param widens by the type of panels
     * @param widthsInPlace numbers of columns that sums in place write, ascending
     * @param inPlace by the type of A, for each of these
     * @param rowsInPlace for each of these
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
            Map<DType, int[][]> sums,
            Map<DType, Integer> packs,
            Map<DType, Integer> widens,
            int[] widthsInPlace,
            Map<DType, int[]> inPlace,
            int[] rowsInPlace) {

        /** Writes all functions, for tiles and panels of fp32, and panels of 16 bits. */
        static Written of(
                String name,
                int rows,
                int cols,
                int rowStep,
                int colStep,
                int depth,
                Assembler code,
                Writer writer) {
            Map<DType, int[][]> sums = new EnumMap<>(DType.class);
            Map<DType, Integer> packs = new EnumMap<>(DType.class);
            Map<DType, Integer> widens = new EnumMap<>(DType.class);
            Map<DType, int[]> inPlace = new EnumMap<>(DType.class);
            int[] widths = writer.widthsInPlace();
            int[] rowsInPlace = Arrays.stream(widths).map(writer::rowsInPlace).toArray();
            for (DType type : DType.UNSCALED) {
                int[][] ofType = new int[rows / rowStep][cols / colStep];
                for (int i = 0; i < ofType.length; i++) {
                    for (int j = 0; j < ofType[i].length; j++) {
                        ofType[i][j] = writer.sum(type, i + 1, j + 1);
                    }
                }
                sums.put(type, ofType);
                packs.put(type, writer.pack(type));
                inPlace.put(
                        type,
                        Arrays.stream(widths)
                                .map(width -> writer.sumInPlace(type, width))
                                .toArray());
                if (type != DType.FP32) {
                    widens.put(type, writer.widen(type));
                }
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
                    packs,
                    widens,
                    widths,
                    inPlace,
                    rowsInPlace);
        }

        /** The number of the sum in place that has the fewest columns, at least so many. */
        private int inPlaceWith(int colCount) {
            int number = 0;
            while (widthsInPlace[number] < colCount) {
                number++;
            }
            return number;
        }
    }

    private TileCode(Written written) {
        this.written = written;
        ExecutableMemory memory = ExecutableMemory.of(written.code);
        rows = written.rows;
        cols = written.cols;
        mostRowsInPlace = Arrays.stream(written.rowsInPlace).max().orElse(0);
        written.sums.forEach(
                (type, entries) ->
                        sums.put(
                                type,
                                Arrays.stream(entries)
                                        .map(row -> entries(memory, row))
                                        .toArray(MemorySegment[][]::new)));
        written.packs.forEach((type, offset) -> packs.put(type, memory.entry(offset)));
        written.widens.forEach((type, offset) -> widens.put(type, memory.entry(offset)));
        written.inPlace.forEach((type, offsets) -> inPlace.put(type, entries(memory, offsets)));
    }

    /** Code that has multiplied small tiles rightly. */
    private static TileCode checked(Written written) {
        TileCode code = new TileCode(written);
        for (DType type : code.packs.keySet()) {
            new SmallProduct(code, type).check();
        }
        return code;
    }

    private static MemorySegment[] entries(ExecutableMemory memory, int[] offsets) {
        return Arrays.stream(offsets).mapToObj(memory::entry).toArray(MemorySegment[]::new);
    }

    /**
     * The code for this machine: the fastest that it can execute, or the one that the property
     * {@code weft.gemm.code} names.
     *
     * @throws IllegalStateException that says in one line why there is none
     */
    public static TileCode forThisMachine() {
        String kind = Processor.here().kind(System.getProperty("weft.gemm.code"));
        return checked(
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
        return checked(X86AmxTiles.write());
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
            DType panelType,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        MemorySegment[][] functions = this.sums.get(panelType);
        if (functions == null) {
            throw new IllegalArgumentException(
                    "engine %s sums no panels of %s".formatted(name(), panelType.label()));
        }
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
        long panelBytes = panelBytes(panelType, depth);
        check(packed, aFrom, tileBytes(depth), tileCount, tileBytes(depth));
        check(panels, bFrom, panelBytes, panelCount, panelBytes);
        checkTarget(sums, sumsFrom, pitch, rowsWritten, rowBytes);
        arguments.set(Name.A_FROM, aFrom);
        arguments.set(Name.B_FROM, bFrom);
        arguments.set(Name.C_FROM, sumsFrom);
        arguments.set(Name.DEPTH, depth);
        arguments.set(Name.PITCH, pitch);
        arguments.set(Name.RESUME, resume ? 1 : 0);
        arguments.set(Name.COUNT, tileCount);
        arguments.set(Name.PANELS, panelCount);
        call(functions[rowSteps - 1][colSteps - 1], packed, panels, sums, arguments);
    }

    @Override
    public boolean keeps(DType type) {
        return widens.containsKey(type);
    }

    @Override
    public void widen(
            DType type,
            MemorySegment panels,
            long from,
            int depth,
            MemorySegment to,
            Arguments arguments) {
        MemorySegment function = widens.get(type);
        if (function == null) {
            throw new IllegalArgumentException(
                    "engine %s keeps no panels of %s".formatted(name(), type.label()));
        }
        check(panels, from, 0, 1, panelBytes(type, depth));
        checkTarget(to, 0, 0, 1, panelBytes(DType.FP32, depth));
        arguments.set(Name.A_FROM, from);
        arguments.set(Name.C_FROM, 0);
        arguments.set(Name.DEPTH, depth);
        call(function, panels, to, to, arguments);
    }

    @Override
    public int rowsInPlace(int colCount) {
        requireUpTo(cols, colCount, "columns");
        return inPlace.isEmpty() ? 0 : written.rowsInPlace[written.inPlaceWith(colCount)];
    }

    @Override
    public int mostRowsInPlace() {
        return mostRowsInPlace;
    }

    @Override
    public void sumInPlace(
            boolean resume,
            DType typeA,
            MemorySegment a,
            long aFrom,
            long aPitch,
            int rowCount,
            int depth,
            MemorySegment panels,
            long bFrom,
            int colCount,
            MemorySegment sums,
            long sumsFrom,
            long pitch,
            Arguments arguments) {
        MemorySegment[] functions = inPlace.get(typeA);
        if (functions == null) {
            throw new IllegalArgumentException(
                    "engine %s sums no %s in place".formatted(name(), typeA.label()));
        }
        if (depth < LEAST_DEPTH_IN_PLACE) {
            throw new IllegalArgumentException(
                    "depth %s: expected %s or more".formatted(depth, LEAST_DEPTH_IN_PLACE));
        }
        requireUpTo(cols, colCount, "columns");
        int number = written.inPlaceWith(colCount);
        long rowBytes = (long) written.widthsInPlace[number] * Float.BYTES;
        long quantum = written.rowsInPlace[number];
        long panelBytes = panelBytes(DType.FP32, depth);
        check(a, aFrom, aPitch, rowCount, (long) depth * typeA.bytes());
        check(panels, bFrom, panelBytes, 1, panelBytes);
        checkTarget(sums, sumsFrom, pitch, Math.ceilDiv(rowCount, quantum) * quantum, rowBytes);
        arguments.set(Name.A_FROM, aFrom);
        arguments.set(Name.A_PITCH, aPitch);
        arguments.set(Name.B_FROM, bFrom);
        arguments.set(Name.C_FROM, sumsFrom);
        arguments.set(Name.DEPTH, depth);
        arguments.set(Name.PITCH, pitch);
        arguments.set(Name.RESUME, resume ? 1 : 0);
        arguments.set(Name.COUNT, rowCount);
        call(functions[number], a, panels, sums, arguments);
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

    static void check(MemorySegment memory, long from, long pitch, long count, long rowBytes) {
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
