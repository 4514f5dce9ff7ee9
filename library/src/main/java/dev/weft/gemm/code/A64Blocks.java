package dev.weft.gemm.code;

import dev.weft.gemm.code.A64Assembler.Condition;
import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;

/**
 * Writes {@link BlockKernel}s for aarch64 with SDOT, which multiplies signed bytes: panels of four
 * columns, one vector, and up to 8 rows. Elements of A are taken from vectors that hold four rows.
 */
final class A64Blocks {

    private static final int ROWS = 8;
    private static final int COLS = 4;
    private static final int VECTOR_BYTES = 16;
    private static final int GROUPS = BlockPanels.GROUPS;

    // General registers; the first four as in the calling convention.
    private static final int A = 0;
    private static final int B = 1;
    private static final int SUMS = 2;
    private static final int ARGUMENTS = 3;
    private static final int PITCH = 4;
    private static final int FIRST_A = 5;
    private static final int STEPS = 6;
    private static final int SCALES = 7;
    private static final int STEPS_LEFT = 8;
    private static final int PANELS = 9;
    private static final int RESUME = 10;
    private static final int ROW = 11;
    private static final int SCALES_FROM = 12;
    private static final int STEPS_OF_SCALES = 13;
    private static final int OTHER = 14;

    // Vector registers: v8 to v15 belong to the caller.
    private static final int NUMBERS = 0;
    private static final int PART = 1;
    private static final int PRODUCT = 2;
    private static final int MASK = 3;
    private static final int SCALE = 4;
    private static final int OFFSET = 5;
    private static final int OF_A = 6;
    private static final int WHOLE = 16;
    private static final int SUM = 24;

    private final A64Assembler code = new A64Assembler();
    private int rows;
    private BlockPanels panels;

    private A64Blocks() {}

    static BlockCode.Written write() {
        A64Blocks blocks = new A64Blocks();
        return BlockCode.Written.of(
                "neon", ROWS, Integer.MAX_VALUE, COLS, false, blocks.code, blocks::sum);
    }

    private int sum(BlockPanels layout, int rowCount) {
        rows = rowCount;
        panels = layout;
        code.align(64);
        final int start = code.position();
        loadArguments();
        code.moviBytes(MASK, 15);
        Label panel = code.label();
        code.mov(A, FIRST_A);
        code.add(SCALES, B, SCALES_FROM, 0);
        loadOrClear();
        code.mov(STEPS_LEFT, STEPS);
        if (layout.hasOffsets()) {
            Label again = code.label();
            code.ldrDPost(SCALE, SCALES, layout.scaleBytes());
            code.fcvtl(SCALE, SCALE);
            code.ldrDPost(OFFSET, SCALES, layout.scaleBytes());
            code.fcvtl(OFFSET, OFFSET);
            code.movImm(STEPS_OF_SCALES, BlockPanels.STEPS_OF_K);
            Label step = code.label();
            step();
            code.subsImm(STEPS_OF_SCALES, STEPS_OF_SCALES, 1);
            code.b(Condition.NE, step);
            code.subsImm(STEPS_LEFT, STEPS_LEFT, BlockPanels.STEPS_OF_K);
            code.b(Condition.NE, again);
        } else {
            Label step = code.label();
            step();
            code.subsImm(STEPS_LEFT, STEPS_LEFT, 1);
            code.b(Condition.NE, step);
        }
        code.mov(ROW, SUMS);
        for (int row = 0; row < rows; row++) {
            code.strQ(SUM + row, ROW, 0);
            code.add(ROW, ROW, PITCH, 0);
        }
        code.addImm(SUMS, SUMS, VECTOR_BYTES);
        // The next panel begins at a line.
        code.addImm(B, SCALES, 63);
        code.lsr(B, B, 6);
        code.add(B, A64Assembler.ZERO, B, 6);
        code.subsImm(PANELS, PANELS, 1);
        code.b(Condition.NE, panel);
        code.ret();
        return start;
    }

    private void loadArguments() {
        code.ldrX(OTHER, ARGUMENTS, Name.A_FROM.offset());
        code.add(FIRST_A, A, OTHER, 0);
        code.ldrX(OTHER, ARGUMENTS, Name.B_FROM.offset());
        code.add(B, B, OTHER, 0);
        code.ldrX(OTHER, ARGUMENTS, Name.C_FROM.offset());
        code.add(SUMS, SUMS, OTHER, 0);
        code.ldrX(STEPS, ARGUMENTS, Name.DEPTH.offset());
        code.ldrX(RESUME, ARGUMENTS, Name.RESUME.offset());
        code.ldrX(SCALES_FROM, ARGUMENTS, Name.COUNT.offset());
        code.ldrX(PANELS, ARGUMENTS, Name.PANELS.offset());
        code.ldrX(PITCH, ARGUMENTS, Name.PITCH.offset());
    }

    private void loadOrClear() {
        Label done = new Label();
        for (int row = 0; row < rows; row++) {
            code.zero(SUM + row);
        }
        code.cbz(RESUME, done);
        code.mov(ROW, SUMS);
        for (int row = 0; row < rows; row++) {
            code.ldrQ(SUM + row, ROW, 0);
            code.add(ROW, ROW, PITCH, 0);
        }
        code.place(done);
    }

    /** 32 k of all rows; leaves A, B and scales at the next. */
    private void step() {
        for (int row = 0; row < rows; row++) {
            code.zero(WHOLE + row);
        }
        if (panels.isHalved()) {
            // All groups of the lower halves, then B once more for those of the upper ones.
            for (int group = 0; group < GROUPS / 2; group++) {
                code.ldrQPost(NUMBERS, B, VECTOR_BYTES);
                code.and(PART, NUMBERS, MASK);
                multiply(PART);
            }
            code.subImm(B, B, GROUPS / 2 * VECTOR_BYTES);
            for (int group = 0; group < GROUPS / 2; group++) {
                code.ldrQPost(NUMBERS, B, VECTOR_BYTES);
                code.ushrBytes(PART, NUMBERS, 4);
                multiply(PART);
            }
        } else {
            for (int group = 0; group < GROUPS; group++) {
                code.ldrQPost(NUMBERS, B, VECTOR_BYTES);
                multiply(NUMBERS);
            }
        }
        scale();
    }

    /** Loads four bytes of each row into the vectors from {@link #OF_A} on. */
    private void loadOfRows() {
        for (int row = 0; row < rows; row += COLS) {
            int count = Math.min(COLS, rows - row);
            code.ldrQPost(OF_A + row / COLS, A, count * Integer.BYTES);
        }
    }

    private void multiply(int of) {
        loadOfRows();
        for (int row = 0; row < rows; row++) {
            code.sdot(WHOLE + row, of, OF_A + row / COLS, row % COLS);
        }
    }

    /** Adds the scaled whole sums to the sums in fp32. */
    private void scale() {
        loadOfRows();
        if (panels.hasOffsets()) {
            loadBytes(NUMBERS, SCALE);
            loadBytes(PART, OFFSET);
            for (int row = 0; row < rows; row++) {
                code.scvtf(WHOLE + row, WHOLE + row);
                code.fmul(PRODUCT, PART, OF_A + row / COLS, row % COLS);
                code.fmla(PRODUCT, WHOLE + row, NUMBERS);
                code.movV(WHOLE + row, PRODUCT);
            }
        } else {
            code.ldrDPost(NUMBERS, SCALES, panels.scaleBytes());
            code.fcvtl(NUMBERS, NUMBERS);
            for (int row = 0; row < rows; row++) {
                if (panels.bias() != 0) {
                    code.dup(PRODUCT, OF_A + row / COLS, row % COLS);
                    code.addWhole(WHOLE + row, WHOLE + row, PRODUCT);
                }
                code.scvtf(WHOLE + row, WHOLE + row);
                code.fmul(WHOLE + row, WHOLE + row, NUMBERS);
            }
        }
        loadOfRows();
        for (int row = 0; row < rows; row++) {
            code.fmla(SUM + row, WHOLE + row, OF_A + row / COLS, row % COLS);
        }
    }

    /** d = the next byte of each column x of. */
    private void loadBytes(int d, int of) {
        code.ldrSPost(d, SCALES, COLS);
        code.uxtlBytes(d, d);
        code.uxtl16(d, d);
        code.scvtf(d, d);
        code.fmul(d, d, of);
    }
}
