package dev.weft.gemm.code;

import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import dev.weft.tensor.BlockType;
import java.util.List;

/**
 * Writes {@link BlockKernel}s with AMX, whose instruction multiplies up to 16 rows of A with a step
 * of a panel: 32 k of 16 columns. Few rows are multiplied by VNNI's code, which reads the same
 * panels.
 *
 * <p>Numbers of B become signed bytes on the stack, from where a tile register takes them, and
 * whole sums go through the stack to vector registers, which scale and add them. A tile that is
 * loaded must wait until what was stored has left the processor's queue, and so must a vector. So
 * while {@value #BATCH} steps are multiplied, the numbers of the next ones are stored and the sums
 * of those before are scaled.
 */
final class X86TileBlocks extends X86Blocks {

    /** Which the code needs besides {@link X86Blocks#VNNI}, in Linux's names. */
    static final List<String> FEATURES = List.of("amx_int8", "amx_tile");

    private static final int MOST_ROWS = 16;

    /**
     * Measured on a Xeon with AMX, beside VNNI, K of 1024: 8 rows take 0.95 to 1.01 of the time, 9
     * 0.94 to 0.96, 12 0.80 to 0.85.
     */
    private static final int TILES_FROM = 9;

    /** Steps. */
    private static final int BATCH = 4;

    private static final int NUMBER_BYTES = GROUPS * LINE_BYTES;
    private static final int SUM_BYTES = MOST_ROWS * LINE_BYTES;
    private static final int BUFFER_BYTES = BATCH * (NUMBER_BYTES + SUM_BYTES);

    // On the stack, after two buffers.
    private static final int STACK_BEFORE = 2 * BUFFER_BYTES;
    private static final int A_BEFORE = STACK_BEFORE + Long.BYTES;

    /** The buffer of the batch at hand: numbers, then sums. */
    private static final int OWN = X86Assembler.R14;

    /** That of the batch before, and of the next one. */
    private static final int OTHER = X86Assembler.RAX;

    // Bytes from row to row of a tile.
    private static final int LINE_PITCH = X86Assembler.RBP;
    private static final int STEP_PITCH = X86Assembler.R15;

    // Tile registers, after the sums of each step of a batch.
    private static final int A_TILE = 4;
    private static final int B_TILE = 6;

    /** Vector register. */
    private final int bias;

    private X86TileBlocks(X86Assembler code) {
        super(code, true);
        bias = ones;
    }

    static BlockCode.Written write() {
        X86Assembler code = new X86Assembler(512);
        X86Blocks few = new X86Blocks(code, true);
        X86Blocks tiles = new X86TileBlocks(code);
        return BlockCode.Written.of(
                "amx",
                MOST_ROWS,
                TILES_FROM,
                LINE_BYTES / Float.BYTES,
                true,
                code,
                (layout, rows) -> (rows < TILES_FROM ? few : tiles).sum(layout, rows));
    }

    @Override
    int sumOf(int row) {
        return row;
    }

    /** What LDTILECFG reads: palette 1, then the bytes of a row and the rows of each register. */
    @Override
    void writeData() {
        byte[] config = new byte[LINE_BYTES];
        config[0] = 1;
        for (int tile = 0; tile < B_TILE + 2; tile++) {
            boolean ofA = tile >= A_TILE && tile < B_TILE;
            config[16 + 2 * tile] = (byte) (ofA ? BlockPanels.STEP : LINE_BYTES);
            config[48 + tile] = (byte) (tile < B_TILE ? rows : GROUPS);
        }
        code.data(config);
    }

    @Override
    void enter(Label data) {
        code.ldtilecfg(data);
        code.movImm(STEP_PITCH, BlockPanels.STEP);
        code.mov(OWN, X86Assembler.RSP);
        code.subImm(X86Assembler.RSP, A_BEFORE + Long.BYTES);
        code.andImm(X86Assembler.RSP, -LINE_BYTES);
        code.movStore(X86Assembler.RSP, STACK_BEFORE, OWN);
        code.movStore(X86Assembler.RSP, A_BEFORE, A);
        code.mov(OWN, X86Assembler.RSP);
        code.mov(OTHER, X86Assembler.RSP);
        code.addImm(OTHER, BUFFER_BYTES);
        constant(bias, panels.type() == BlockType.Q8_0 ? 0x80808080 : 0x08080808);
    }

    @Override
    void leave() {
        code.tilerelease();
        code.movLoad(X86Assembler.RSP, X86Assembler.RSP, STACK_BEFORE);
    }

    @Override
    void steps() {
        code.movLoad(A, X86Assembler.RSP, A_BEFORE);
        code.movImm(LINE_PITCH, LINE_BYTES);
        if (panels.hasOffsets()) {
            code.movImm(STEPS_OF_SCALES, 0);
        }
        final Label rest = new Label();
        final Label last = new Label();
        code.cmpImm(STEPS_LEFT, BATCH);
        code.j(Condition.L, rest);
        for (int i = 0; i < BATCH; i++) {
            store(i, OWN);
        }
        batch(true, false);
        code.cmpImm(STEPS_LEFT, BATCH);
        code.j(Condition.L, last);
        Label again = code.label();
        batch(true, true);
        code.cmpImm(STEPS_LEFT, BATCH);
        code.j(Condition.GE, again);
        code.place(last);
        batch(false, true);
        code.addImm(B, BATCH * panels.stepBytes());
        code.place(rest);
        if (!panels.hasOffsets()) {
            rest();
        }
    }

    /**
     * Multiplies a batch and stores the numbers of the next one.
     *
     * @param multiplies false after the last one
     * @param scales whether to add the sums of the one before
     */
    private void batch(boolean multiplies, boolean scales) {
        if (multiplies) {
            Label isLast = new Label();
            code.cmpImm(STEPS_LEFT, 2 * BATCH);
            code.j(Condition.L, isLast);
            code.addImm(B, BATCH * panels.stepBytes());
            code.place(isLast);
        }
        if (scales && panels.hasOffsets()) {
            Label stay = new Label();
            code.test(STEPS_OF_SCALES, STEPS_OF_SCALES);
            code.j(Condition.NE, stay);
            loadScales();
            code.movImm(STEPS_OF_SCALES, BlockPanels.STEPS_OF_K);
            code.place(stay);
            code.subImm(STEPS_OF_SCALES, BATCH);
        }
        for (int i = 0; i < BATCH; i++) {
            if (multiplies) {
                multiply(i);
            }
            if (scales) {
                scale(i, OTHER, (i - BATCH) * BlockPanels.rowStepBytes(rows));
            }
            if (multiplies) {
                store(i, OTHER);
            }
        }
        if (scales) {
            code.addImm(SCALES, BATCH * panels.scaleBytes());
        }
        if (multiplies) {
            code.addImm(A, BATCH * BlockPanels.rowStepBytes(rows));
            code.subImm(STEPS_LEFT, BATCH);
            code.mov(LINE_PITCH, OWN);
            code.mov(OWN, OTHER);
            code.mov(OTHER, LINE_PITCH);
            code.movImm(LINE_PITCH, LINE_BYTES);
        }
    }

    /** The steps after the last batch, one by one. */
    private void rest() {
        Label done = new Label();
        code.test(STEPS_LEFT, STEPS_LEFT);
        code.j(Condition.E, done);
        Label again = code.label();
        store(0, OWN);
        multiply(0);
        scale(0, OWN, 0);
        code.addImm(A, BlockPanels.rowStepBytes(rows));
        code.addImm(B, panels.stepBytes());
        code.addImm(SCALES, panels.scaleBytes());
        code.dec(STEPS_LEFT);
        code.j(Condition.NE, again);
        code.place(done);
    }

    /** Stores the numbers of step {@code i} from B on as signed bytes. */
    private void store(int i, int buffer) {
        for (int group = 0; group < GROUPS; group++) {
            boolean upper = panels.isHalved() && group >= GROUPS / 2;
            int line = upper ? group - GROUPS / 2 : group;
            code.vmovups(numbers, B, i * panels.stepBytes() + line * LINE_BYTES);
            if (upper) {
                code.vpsrld(numbers, numbers, 4);
            }
            if (panels.isHalved()) {
                code.vpand(numbers, numbers, mask);
            }
            if (panels.bias() != 0) {
                code.vpsubb(numbers, numbers, bias);
            }
            code.vmovupsStore(buffer, i * NUMBER_BYTES + group * LINE_BYTES, numbers);
        }
    }

    private void multiply(int i) {
        int a = A_TILE + i % 2;
        int b = B_TILE + i % 2;
        code.tilezero(i);
        code.tileloadd(a, A, STEP_PITCH, i * BlockPanels.rowStepBytes(rows));
        code.tileloadd(b, OWN, LINE_PITCH, i * NUMBER_BYTES);
        code.tdpbssd(i, a, b);
        code.tilestored(OWN, LINE_PITCH, BATCH * NUMBER_BYTES + i * SUM_BYTES, i);
    }

    /** Adds the whole sums of step {@code i}. */
    private void scale(int i, int buffer, int aFrom) {
        loadStepScales(i * panels.scaleBytes());
        for (int row = 0; row < rows; row++) {
            int whole = bias + 1;
            int sums = BATCH * NUMBER_BYTES + i * SUM_BYTES;
            code.vcvtdq2ps(whole, buffer, sums + row * LINE_BYTES);
            add(row, whole, aFrom);
        }
    }
}
