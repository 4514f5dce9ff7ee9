package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.R10;
import static dev.weft.gemm.code.X86Assembler.R11;
import static dev.weft.gemm.code.X86Assembler.R8;
import static dev.weft.gemm.code.X86Assembler.R9;
import static dev.weft.gemm.code.X86Assembler.RAX;
import static dev.weft.gemm.code.X86Assembler.RBX;
import static dev.weft.gemm.code.X86Assembler.RCX;
import static dev.weft.gemm.code.X86Assembler.RDI;
import static dev.weft.gemm.code.X86Assembler.RDX;
import static dev.weft.gemm.code.X86Assembler.RSI;

import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import dev.weft.tensor.DType;
import java.util.stream.IntStream;

/**
 * Writes the code for x86_64: tiles of 12 rows x 2 vectors with AVX-512, which has 32 registers,
 * and of 4 rows x 3 vectors with AVX2, which has 16. Each needs no more loads than the processor
 * can do alongside its multiply-adds: 14 for 24, and 7 for 12.
 */
final class X86Tiles implements TileCode.Writer {

    /** Rows of A that are transposed at a time. */
    static final int GROUP = 4;

    /** Steps of k in a loop; a loop of single steps does the rest. */
    private static final int UNROLLED = 4;

    /**
     * A panel then has 64 KiB, more than the nearest cache; 11 bytes per cycle from the
     * second-level cache do not slow it down. Measured at 2048 cubed with 2 MiB of second-level
     * cache, as a fraction of the best, with the Vector API: 512 1.00, 384 0.98, 1024 0.96, 256
     * 0.94.
     */
    private static final int AVX512_DEPTH = 512;

    /** A panel then has 24 KiB: 16 bytes per cycle would be too many for the second-level cache. */
    private static final int AVX2_DEPTH = 256;

    /** How far ahead of its use a packed tile is prefetched from the second-level cache. */
    private static final int AHEAD_BYTES = 512;

    /**
     * How far ahead of its use a panel is prefetched, which a product of few rows reads only once.
     * Measured from memory with 8 rows: 2048 and 4096 1.00, 1024 0.95, 64 0.91; bf16 0.95, 0.84.
     */
    private static final int PANEL_AHEAD_BYTES = 2048;

    static final int LINE_BYTES = 64;

    // General registers of a sum, the first four as in the calling convention.
    static final int A = RDI;
    static final int PANEL = RSI;
    static final int SUMS = RDX;
    static final int ARGUMENTS = RCX;
    static final int PITCH = RCX;
    static final int DEPTH = R8;
    static final int TILES = R9;
    static final int B = RAX;
    static final int SUM_ROW = R10;
    static final int STEPS = R11;

    /** Used only between one panel and the next. */
    static final int PANELS = R11;

    static final int RESUME = RBX;

    // General registers of a pack.
    static final int PACK_ROW = RDI;
    static final int PACK_TARGET = RDX;
    static final int PACK_DEPTH = R8;
    static final int PACK_PITCH = R9;
    static final int PACK_COUNT = R10;

    final X86Assembler code;
    final int vectorBytes;
    private final int registers;
    private final int tileRows;
    private final int tileVectors;

    private X86Tiles(int vectorBits) {
        boolean wide = vectorBits == 512;
        code = new X86Assembler(vectorBits);
        vectorBytes = vectorBits / Byte.SIZE;
        registers = wide ? 32 : 16;
        tileRows = wide ? 12 : 4;
        tileVectors = wide ? 2 : 3;
    }

    /** For vectors of 256 bits (AVX2, FMA and F16C) or 512 bits (AVX-512F). */
    static TileCode.Written write(int vectorBits) {
        X86Tiles tiles = new X86Tiles(vectorBits);
        int lanes = tiles.vectorBytes / Float.BYTES;
        return TileCode.Written.of(
                vectorBits == 512 ? "avx512" : "avx2",
                tiles.tileRows,
                tiles.tileVectors * lanes,
                GROUP,
                lanes,
                vectorBits == 512 ? AVX512_DEPTH : AVX2_DEPTH,
                tiles.code,
                tiles);
    }

    /**
     * Up to as many columns, a vector has sums of rows, not of columns. Measured with 4096 x 4096
     * from memory, AVX-512, compared with sums of columns: 1 column 1.7 times as fast, 4 columns
     * 1.4.
     */
    private static final int MOST_IN_LANES = 4;

    @Override
    public int[] widthsInPlace() {
        IntStream few = IntStream.rangeClosed(1, MOST_IN_LANES);
        IntStream vectors = IntStream.rangeClosed(1, tileVectors).map(v -> v * lanes());
        return IntStream.concat(few, vectors).toArray();
    }

    private int lanes() {
        return vectorBytes / Float.BYTES;
    }

    /**
     * As many as registers hold, but no more rows than are fetched well at a time: measured at 4096
     * x 4096 x 16, from memory, 24 rows of AVX-512 take 1.15 times as long as 12.
     */
    @Override
    public int rowsInPlace(int cols) {
        if (cols <= MOST_IN_LANES) {
            return lanes();
        }
        return registers == 32 ? tileRows : tileRows * tileVectors / (cols / lanes());
    }

    /**
     * Sums of some rows and vectors; packed tiles and panels keep their full width.
     *
     * @param type of the panels
     */
    @Override
    public int sum(DType type, int rowSteps, int vectors) {
        final int rows = rowSteps * GROUP;
        code.align(LINE_BYTES);
        final int start = code.position();
        code.push(RBX);
        loadArguments(code);
        keepForNextPanel(code);
        Label tile = code.label();
        code.mov(B, PANEL);
        loadOrClear(rows, vectors);
        // Tiles with fewer rows have none below them.
        if (rows == tileRows) {
            fetchNextSums(rows, vectors);
        }
        steps(type, rows, vectors);
        storeSums(rows, vectors);
        code.dec(TILES);
        code.j(Condition.NE, tile);
        nextPanel(code, tile, panelRowBytes(DType.FP32));
        code.pop(RBX);
        code.vzeroupper();
        code.ret();
        return start;
    }

    /** Loads the arguments of a sum into their registers, the last one over the arguments' own. */
    static void loadArguments(X86Assembler code) {
        code.movLoad(RAX, ARGUMENTS, Name.A_FROM.offset());
        code.add(A, RAX);
        code.movLoad(RAX, ARGUMENTS, Name.B_FROM.offset());
        code.add(PANEL, RAX);
        code.movLoad(RAX, ARGUMENTS, Name.C_FROM.offset());
        code.add(SUMS, RAX);
        code.movLoad(DEPTH, ARGUMENTS, Name.DEPTH.offset());
        code.movLoad(RESUME, ARGUMENTS, Name.RESUME.offset());
        code.movLoad(TILES, ARGUMENTS, Name.COUNT.offset());
        code.movLoad(PANELS, ARGUMENTS, Name.PANELS.offset());
        code.movLoad(PITCH, ARGUMENTS, Name.PITCH.offset());
    }

    /** Saves on the stack what {@link #nextPanel} needs again. */
    static void keepForNextPanel(X86Assembler code) {
        code.push(A);
        code.push(SUMS);
        code.push(TILES);
        code.push(PANELS);
    }

    /**
     * Sums the same tiles with the next panel, which begins where this one ends, from {@code tile}
     * on; restores the stack after the last one.
     */
    static void nextPanel(X86Assembler code, Label tile, int sumRowBytes) {
        code.pop(PANELS);
        code.pop(TILES);
        code.pop(SUMS);
        code.pop(A);
        code.addImm(SUMS, sumRowBytes);
        code.mov(PANEL, B);
        code.dec(PANELS);
        keepForNextPanel(code);
        code.j(Condition.NE, tile);
        for (int i = 0; i < 4; i++) {
            code.pop(A);
        }
    }

    /** Loads the arguments of a pack. */
    static void loadPackArguments(X86Assembler code) {
        code.movLoad(RAX, ARGUMENTS, Name.A_FROM.offset());
        code.add(PACK_ROW, RAX);
        code.movLoad(RAX, ARGUMENTS, Name.C_FROM.offset());
        code.add(PACK_TARGET, RAX);
        code.movLoad(PACK_DEPTH, ARGUMENTS, Name.DEPTH.offset());
        code.movLoad(PACK_PITCH, ARGUMENTS, Name.PITCH.offset());
        code.movLoad(PACK_COUNT, ARGUMENTS, Name.COUNT.offset());
    }

    /** Stores the sums, and goes on to the rows below them. */
    void storeSums(int rows, int vectors) {
        code.mov(SUM_ROW, SUMS);
        for (int row = 0; row < rows; row++) {
            for (int v = 0; v < vectors; v++) {
                code.vmovupsStore(SUM_ROW, v * vectorBytes, sumRegister(row, v, vectors));
            }
            code.add(SUM_ROW, PITCH);
        }
        code.mov(SUMS, SUM_ROW);
    }

    void loadOrClear(int rows, int vectors) {
        Label done = new Label();
        for (int row = 0; row < rows; row++) {
            for (int v = 0; v < vectors; v++) {
                code.zero(sumRegister(row, v, vectors));
            }
        }
        code.test(RESUME, RESUME);
        code.j(Condition.E, done);
        code.mov(SUM_ROW, SUMS);
        for (int row = 0; row < rows; row++) {
            for (int v = 0; v < vectors; v++) {
                code.vmovups(sumRegister(row, v, vectors), SUM_ROW, v * vectorBytes);
            }
            code.add(SUM_ROW, PITCH);
        }
        code.place(done);
    }

    /** Prefetches the next tile's sums, which may be far away. */
    private void fetchNextSums(int rows, int vectors) {
        int last = vectors * vectorBytes - 1;
        code.mov(SUM_ROW, SUMS);
        for (int row = 0; row < rows; row++) {
            code.add(SUM_ROW, PITCH);
        }
        for (int row = 0; row < rows; row++) {
            for (int at = 0; at < last; at += LINE_BYTES) {
                code.prefetcht0(SUM_ROW, at);
            }
            code.prefetcht0(SUM_ROW, last);
            code.add(SUM_ROW, PITCH);
        }
    }

    private void steps(DType type, int rows, int vectors) {
        Label rest = new Label();
        Label done = new Label();
        code.mov(STEPS, DEPTH);
        code.subImm(STEPS, UNROLLED);
        code.j(Condition.L, rest);
        code.align(32);
        Label again = code.label();
        for (int at = 0; at < UNROLLED * columnBytes(); at += LINE_BYTES) {
            code.prefetcht0(A, AHEAD_BYTES + at);
        }
        for (int at = 0; at < UNROLLED * panelRowBytes(type); at += LINE_BYTES) {
            code.prefetcht0(B, PANEL_AHEAD_BYTES + at);
        }
        for (int step = 0; step < UNROLLED; step++) {
            packedStep(type, step, rows, vectors);
        }
        advance(type, UNROLLED);
        code.subImm(STEPS, UNROLLED);
        code.j(Condition.GE, again);
        code.place(rest);
        code.addImm(STEPS, UNROLLED);
        code.j(Condition.LE, done);
        Label one = code.label();
        packedStep(type, 0, rows, vectors);
        advance(type, 1);
        code.dec(STEPS);
        code.j(Condition.NE, one);
        code.place(done);
    }

    private void packedStep(DType type, int step, int rows, int vectors) {
        step(type, step, rows, vectors, A, step * columnBytes(), Float.BYTES);
    }

    private void advance(DType type, int steps) {
        code.addImm(A, steps * columnBytes());
        code.addImm(B, steps * panelRowBytes(type));
    }

    /**
     * The multiply-adds of one k.
     *
     * @param type of the panel
     * @param a the base of A's elements, which are {@code pitch} bytes apart from {@code from} on
     */
    void step(DType type, int step, int rows, int vectors, int a, int from, int pitch) {
        int firstB = rows * vectors;
        int firstElement = firstB + vectors;
        for (int v = 0; v < vectors; v++) {
            int offset = step * panelRowBytes(type) + v * vectorBytes * type.bytes() / Float.BYTES;
            loadVector(type, firstB + v, B, offset);
        }
        for (int row = 0; row < rows; row++) {
            int offset = from + row * pitch;
            // A broadcast that is used once is free inside the multiply-add; one for several would
            // load the same element several times, and loads would become the bottleneck.
            if (vectors == 1 && registers == 32) {
                code.vfmadd231psBroadcast(sumRegister(row, 0, 1), firstB, a, offset);
                continue;
            }
            int element = firstElement + row % (registers - firstElement);
            code.vbroadcastss(element, a, offset);
            for (int v = 0; v < vectors; v++) {
                code.vfmadd231ps(sumRegister(row, v, vectors), firstB + v, element);
            }
        }
    }

    /** Loads as many elements as a vector has lanes, as fp32. */
    void loadVector(DType type, int to, int from, int offset) {
        switch (type) {
            case FP32 -> code.vmovups(to, from, offset);
            case FP16 -> code.vcvtph2ps(to, from, offset);
            case BF16 -> {
                code.vpmovzxwd(to, from, offset);
                code.vpslld(to, to, Short.SIZE);
            }
            case E4M3, E5M2 -> throw new IllegalArgumentException(type.label());
        }
    }

    @Override
    public int sumInPlace(DType type, int cols) {
        return cols <= MOST_IN_LANES
                ? new X86RowsInLanes(this).sum(type, cols)
                : new X86FewColumns(this).sum(type, rowsInPlace(cols), cols / lanes());
    }

    @Override
    public int pack(DType type) {
        return new X86Pack(code, tileRows).write(type);
    }

    @Override
    public int widen(DType type) {
        code.align(LINE_BYTES);
        final int start = code.position();
        loadPackArguments(code);
        Label done = new Label();
        code.test(PACK_DEPTH, PACK_DEPTH);
        code.j(Condition.E, done);
        Label again = code.label();
        code.prefetcht0(PACK_ROW, PANEL_AHEAD_BYTES);
        for (int v = 0; v < tileVectors; v++) {
            loadVector(type, v, PACK_ROW, v * vectorBytes * type.bytes() / Float.BYTES);
            code.vmovupsStore(PACK_TARGET, v * vectorBytes, v);
        }
        code.addImm(PACK_ROW, panelRowBytes(type));
        code.addImm(PACK_TARGET, panelRowBytes(DType.FP32));
        code.dec(PACK_DEPTH);
        code.j(Condition.NE, again);
        code.place(done);
        code.vzeroupper();
        code.ret();
        return start;
    }

    /** A register that holds nothing from one step to the next. */
    int lastRegister() {
        return registers - 1;
    }

    private static int sumRegister(int row, int v, int vectors) {
        return row * vectors + v;
    }

    /** Bytes of one k of a packed tile. */
    private int columnBytes() {
        return tileRows * Float.BYTES;
    }

    /** Bytes of one k of a panel. */
    int panelRowBytes(DType type) {
        return tileVectors * vectorBytes * type.bytes() / Float.BYTES;
    }
}
