package dev.weft.gemm.code;

import static dev.weft.gemm.code.A64Assembler.SP;

import dev.weft.gemm.code.A64Assembler.Condition;
import dev.weft.gemm.code.A64Assembler.Prefetch;
import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;
import dev.weft.tensor.DType;
import java.util.stream.IntStream;

/**
 * Writes the code for aarch64: tiles of 8 rows x 12 columns in 24 vector registers, with the
 * multiply-add by element, which needs no separate broadcast of A's elements. Per k it loads two
 * vectors of A and three of B for 24 multiply-adds. Measured on Neoverse-N1, whose peak is 40
 * GFLOP/s: 39.4 over 256 x 512 x 1536; without prefetching A 38.9.
 */
final class A64Tiles implements TileCode.Writer {

    private static final int ROWS = 8;
    private static final int COLS = 12;
    static final int LANES = 4;
    static final int VECTOR_BYTES = 16;
    private static final int A_STEP = ROWS * Float.BYTES;
    static final int B_STEP = COLS * Float.BYTES;

    /** A panel of 12 columns then has 24 KiB. A prototype on Neoverse-N1 was fastest with it. */
    private static final int DEPTH = 512;

    /** Columns of A per iteration of the loop. */
    private static final int UNROLLED = 4;

    /** How far ahead of its use a packed tile is fetched from the second-level cache. */
    private static final int AHEAD_BYTES = 512;

    /** How far ahead of its use a panel is fetched, which a product of few rows reads once. */
    private static final int PANEL_AHEAD_BYTES = 1024;

    // General registers of a sum.
    static final int A = 0;
    static final int PANEL = 1;
    static final int SUMS = 2;
    static final int PITCH = 3;
    static final int RESUME = 4;
    static final int TILES = 5;
    static final int TURNS = 6;
    static final int REST = 7;
    static final int B = 8;
    static final int FIRST_ROW = 9;
    static final int COUNT = 17;

    /** Eight registers of the caller's, and four that the next panel needs again. */
    private static final int STACK_BYTES = 96;

    /** The first of the registers that hold sums; those before it hold A and B. */
    private static final int FIRST_SUM = 8;

    private final A64Assembler code = new A64Assembler();

    private A64Tiles() {}

    static TileCode.Written write() {
        A64Tiles tiles = new A64Tiles();
        return TileCode.Written.of("neon", ROWS, COLS, LANES, LANES, DEPTH, tiles.code, tiles);
    }

    /**
     * Sums of some rows and vectors; packed tiles and panels keep their full width.
     *
     * @param type of the panels
     */
    @Override
    public int sum(DType type, int rowSteps, int vectors) {
        final int rows = rowSteps * LANES;
        code.align(64);
        final int start = code.position();
        begin(Name.PANELS);
        keepForNextPanel();

        Label tile = code.label();
        code.mov(B, PANEL);
        code.mov(FIRST_ROW, SUMS);
        for (int r = 1; r < rows; r++) {
            code.add(FIRST_ROW + r, FIRST_ROW + r - 1, PITCH, 0);
        }
        loadOrClear(rows, vectors);
        // Prefetch the next tile's sums, which may be far away.
        code.add(SUMS, SUMS, PITCH, 3);
        code.mov(COUNT, SUMS);
        for (int r = 0; r < rows; r++) {
            code.prfm(Prefetch.PSTL1KEEP, COUNT, 0);
            code.prfm(Prefetch.PSTL1KEEP, COUNT, vectors * VECTOR_BYTES - Long.BYTES);
            code.add(COUNT, COUNT, PITCH, 0);
        }
        loop(type, TURNS, rows, vectors, UNROLLED);
        loop(type, REST, rows, vectors, 1);
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < vectors; v++) {
                code.strQ(sumRegister(r, v), FIRST_ROW + r, v * VECTOR_BYTES);
            }
        }
        code.subsImm(TILES, TILES, 1);
        code.b(Condition.NE, tile);

        // The same tiles with the next panel, which begins where this one ends.
        code.ldrX(A, SP, 64);
        code.ldrX(SUMS, SP, 72);
        code.ldrX(TILES, SP, 80);
        code.ldrX(COUNT, SP, 88);
        code.addImm(SUMS, SUMS, B_STEP);
        code.mov(PANEL, B);
        code.subsImm(COUNT, COUNT, 1);
        keepForNextPanel();
        code.b(Condition.NE, tile);

        end();
        return start;
    }

    /** Saves the caller's registers, and loads the arguments of a sum, one of them to COUNT. */
    void begin(Name counted) {
        code.subImm(SP, SP, STACK_BYTES);
        for (int i = 0; i < 4; i++) {
            code.stpD(8 + 2 * i, 9 + 2 * i, SP, 16 * i);
        }
        int arguments = 3;
        int offset = 4;
        code.ldrX(offset, arguments, Name.A_FROM.offset());
        code.add(A, A, offset, 0);
        code.ldrX(offset, arguments, Name.B_FROM.offset());
        code.add(PANEL, PANEL, offset, 0);
        code.ldrX(offset, arguments, Name.C_FROM.offset());
        code.add(SUMS, SUMS, offset, 0);
        code.ldrX(REST, arguments, Name.DEPTH.offset());
        code.lsr(TURNS, REST, 2);
        code.sub(REST, REST, TURNS, 2);
        code.ldrX(RESUME, arguments, Name.RESUME.offset());
        code.ldrX(TILES, arguments, Name.COUNT.offset());
        code.ldrX(COUNT, arguments, counted.offset());
        code.ldrX(PITCH, arguments, Name.PITCH.offset());
    }

    void end() {
        for (int i = 0; i < 4; i++) {
            code.ldpD(8 + 2 * i, 9 + 2 * i, SP, 16 * i);
        }
        code.addImm(SP, SP, STACK_BYTES);
        code.ret();
    }

    private void keepForNextPanel() {
        code.strX(A, SP, 64);
        code.strX(SUMS, SP, 72);
        code.strX(TILES, SP, 80);
        code.strX(COUNT, SP, 88);
    }

    private void loadOrClear(int rows, int vectors) {
        Label clear = new Label();
        Label done = new Label();
        code.cbz(RESUME, clear);
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < vectors; v++) {
                code.ldrQ(sumRegister(r, v), FIRST_ROW + r, v * VECTOR_BYTES);
            }
        }
        code.b(done);
        code.place(clear);
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < vectors; v++) {
                code.zero(sumRegister(r, v));
            }
        }
        code.place(done);
    }

    /** Processes {@code step} columns of A per iteration, {@code turns} iterations. */
    private void loop(DType type, int turns, int rows, int vectors, int step) {
        Label done = new Label();
        code.cbz(turns, done);
        code.mov(COUNT, turns);
        Label again = code.label();
        for (int k = 0; k < step; k++) {
            // A and the first vector of B alternate between two registers, so that the next loads
            // need not wait for this step.
            int a = k % 2 == 0 ? 0 : 5;
            int firstB = k % 2 == 0 ? 2 : 7;
            for (int i = 0; i < rows / LANES; i++) {
                code.ldrQ(a + i, A, k * A_STEP + i * VECTOR_BYTES);
            }
            for (int v = 0; v < vectors; v++) {
                loadVector(type, v == 0 ? firstB : 2 + v, B, k * COLS + v * LANES);
            }
            if (k % 2 == 0) {
                code.prfm(Prefetch.PLDL1KEEP, A, AHEAD_BYTES + k * A_STEP);
                code.prfm(Prefetch.PLDL1KEEP, B, PANEL_AHEAD_BYTES + k * COLS * type.bytes());
            }
            for (int i = 0; i < rows / LANES; i++) {
                for (int v = 0; v < vectors; v++) {
                    for (int lane = 0; lane < LANES; lane++) {
                        int sum = sumRegister(i * LANES + lane, v);
                        code.fmla(sum, v == 0 ? firstB : 2 + v, a + i, lane);
                    }
                }
            }
        }
        code.addImm(A, A, step * A_STEP);
        code.addImm(B, B, step * COLS * type.bytes());
        code.subsImm(COUNT, COUNT, 1);
        code.b(Condition.NE, again);
        code.place(done);
    }

    private static int sumRegister(int row, int vector) {
        return FIRST_SUM + row * (COLS / LANES) + vector;
    }

    /** Loads four elements, the first of which is number {@code element}, as fp32. */
    void loadVector(DType type, int to, int base, int element) {
        if (type == DType.FP32) {
            code.ldrQ(to, base, element * Float.BYTES);
        } else {
            code.ldrD(to, base, element * Short.BYTES);
            if (type == DType.FP16) {
                code.fcvtl(to, to);
            } else {
                code.shll16(to, to);
            }
        }
    }

    @Override
    public int widen(DType type) {
        code.align(64);
        final int start = code.position();
        final int arguments = 3;
        final int target = 2;
        final int offset = 4;
        final int left = 5;
        code.ldrX(offset, arguments, Name.A_FROM.offset());
        code.add(A, A, offset, 0);
        code.ldrX(offset, arguments, Name.C_FROM.offset());
        code.add(target, target, offset, 0);
        code.ldrX(left, arguments, Name.DEPTH.offset());
        Label done = new Label();
        code.cbz(left, done);
        Label again = code.label();
        code.prfm(Prefetch.PLDL1KEEP, A, PANEL_AHEAD_BYTES);
        for (int v = 0; v < COLS / LANES; v++) {
            loadVector(type, v, A, v * LANES);
            code.strQ(v, target, v * VECTOR_BYTES);
        }
        code.addImm(A, A, COLS * type.bytes());
        code.addImm(target, target, B_STEP);
        code.subsImm(left, left, 1);
        code.b(Condition.NE, again);
        code.place(done);
        code.ret();
        return start;
    }

    /** As many as leave registers for a vector of each row and for B. */
    @Override
    public int rowsInPlace(int cols) {
        return cols < COLS ? 8 : 4;
    }

    @Override
    public int[] widthsInPlace() {
        return IntStream.rangeClosed(1, COLS / LANES).map(vectors -> vectors * LANES).toArray();
    }

    @Override
    public int sumInPlace(DType type, int cols) {
        return new A64FewColumns(this, code).sum(type, rowsInPlace(cols), cols / LANES);
    }

    /** Transposes four columns of four rows at a time. */
    @Override
    public int pack(DType type) {
        code.align(64);
        final int start = code.position();
        int arguments = 3;
        int target = 2;
        int firstRow = 4;
        int pitch = 12;
        int rows = 13;
        int scratch = 14;
        int turns = 15;
        int rest = 16;
        code.ldrX(scratch, arguments, Name.A_FROM.offset());
        code.add(A, A, scratch, 0);
        code.ldrX(scratch, arguments, Name.C_FROM.offset());
        code.add(target, target, scratch, 0);
        code.ldrX(pitch, arguments, Name.PITCH.offset());
        code.ldrX(rows, arguments, Name.COUNT.offset());

        Label tile = code.label();
        code.ldrX(rest, arguments, Name.DEPTH.offset());
        code.lsr(turns, rest, 2);
        code.sub(rest, rest, turns, 2);
        code.mov(firstRow, A);
        for (int r = 1; r < ROWS; r++) {
            int row = firstRow + r;
            code.add(scratch, row - 1, pitch, 0);
            code.subsImm(A64Assembler.ZERO, rows, r + 1);
            code.csel(row, scratch, row - 1, Condition.GE);
        }

        Label noTurns = new Label();
        code.cbz(turns, noTurns);
        Label again = code.label();
        for (int half = 0; half < 2; half++) {
            int out = 16 + half * LANES;
            for (int r = 0; r < LANES; r++) {
                loadFour(type, r, firstRow + half * LANES + r);
            }
            code.zip1(4, 0, 2);
            code.zip1(5, 1, 3);
            code.zip2(6, 0, 2);
            code.zip2(7, 1, 3);
            code.zip1(out, 4, 5);
            code.zip2(out + 1, 4, 5);
            code.zip1(out + 2, 6, 7);
            code.zip2(out + 3, 6, 7);
        }
        for (int k = 0; k < UNROLLED; k++) {
            code.stpQPost(16 + k, 16 + LANES + k, target, A_STEP);
        }
        code.subsImm(turns, turns, 1);
        code.b(Condition.NE, again);
        code.place(noTurns);

        Label done = new Label();
        code.cbz(rest, done);
        Label one = code.label();
        for (int r = 0; r < ROWS; r++) {
            loadOne(type, 0, firstRow + r);
            code.strS(0, target, r * Float.BYTES);
        }
        code.addImm(target, target, A_STEP);
        code.subsImm(rest, rest, 1);
        code.b(Condition.NE, one);
        code.place(done);
        // The target is where the next tile begins.
        code.add(A, A, pitch, 3);
        code.subsImm(rows, rows, ROWS);
        code.b(Condition.GT, tile);
        code.ret();
        return start;
    }

    void loadFour(DType type, int to, int from) {
        switch (type) {
            case FP32 -> code.ldrQPost(to, from, VECTOR_BYTES);
            case FP16 -> {
                code.ldrDPost(to, from, VECTOR_BYTES / 2);
                code.fcvtl(to, to);
            }
            case BF16 -> {
                code.ldrDPost(to, from, VECTOR_BYTES / 2);
                code.shll16(to, to);
            }
            case E4M3, E5M2 -> throw new IllegalArgumentException(type.label());
        }
    }

    void loadOne(DType type, int to, int from) {
        switch (type) {
            case FP32 -> code.ldrSPost(to, from, Float.BYTES);
            case FP16 -> {
                code.ldrHPost(to, from, Short.BYTES);
                code.fcvtl(to, to);
            }
            case BF16 -> {
                code.ldrHPost(to, from, Short.BYTES);
                code.shll16(to, to);
            }
            case E4M3, E5M2 -> throw new IllegalArgumentException(type.label());
        }
    }
}
