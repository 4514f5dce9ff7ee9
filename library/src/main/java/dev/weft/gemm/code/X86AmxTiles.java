package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.R10;
import static dev.weft.gemm.code.X86Assembler.R11;
import static dev.weft.gemm.code.X86Assembler.RAX;
import static dev.weft.gemm.code.X86Assembler.RBP;
import static dev.weft.gemm.code.X86Assembler.RCX;
import static dev.weft.gemm.code.X86Assembler.RSI;

import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;

/**
 * Writes the code for bf16 with AMX: tiles of 32 rows x 32 columns, fp32 sums in four of the eight
 * tile registers, two for A and two for B. An instruction multiplies 16 rows x 32 k x 16 columns.
 *
 * <p>Within a step of 32 k the processor sums even and odd k separately, then adds both and adds
 * that to the sum; denormals count as zero. So the bits differ from those of fp32, but each element
 * depends only on its row and column: steps begin at multiples of 32 in any block, and the zeros
 * after K change nothing. A product that continues another has its own steps: a K in parts has the
 * bits of the whole if all parts but the last are multiples of 32. The registers are set up and
 * released in each call, since threads share them with whatever else the process runs.
 */
final class X86AmxTiles {

    /** The features that the code needs, in Linux's names. */
    static final List<String> FEATURES =
            List.of("amx_bf16", "amx_tile", "avx512f", "avx512bw", "bmi2");

    private static final int ROWS = 32;
    private static final int COLS = 32;
    private static final int STEP = Tiles.BF16_STEP;

    /**
     * Measured at 2048 cubed, one thread, the fastest of 20 products, on a Xeon with 2 MiB of
     * second-level cache: 1024 1000 GFLOP/s, 512 800, 384 780.
     */
    private static final int BEST_DEPTH = 1024;

    /**
     * How far ahead of its use a packed tile is prefetched from the second-level cache; without
     * that, a sum takes 1.07 times as long.
     */
    private static final int AHEAD_BYTES = 4096;

    private static final int REGISTERS = 8;
    private static final int REGISTER_ROWS = 16;
    private static final int REGISTER_ROW_BYTES = 64;
    private static final int REGISTER_BYTES = REGISTER_ROWS * REGISTER_ROW_BYTES;

    /** Bytes of a step of A, and of B: two registers. */
    private static final int STEP_BYTES = 2 * REGISTER_BYTES;

    private static final int A_TILE = 4;
    private static final int B_TILE = 6;

    private final X86Assembler code = new X86Assembler(512);

    private X86AmxTiles() {}

    static TileCode.Written write() {
        X86AmxTiles tiles = new X86AmxTiles();
        int sum = tiles.sum();
        int pack = tiles.pack();
        return new TileCode.Written(
                "amx",
                DType.BF16,
                ROWS,
                COLS,
                ROWS,
                COLS,
                BEST_DEPTH,
                tiles.code.code(),
                Map.of(DType.BF16, new int[][] {{sum}}),
                Map.of(DType.BF16, pack),
                Map.of(),
                new int[0],
                Map.of(),
                new int[0]);
    }

    private int sum() {
        final int a = X86Tiles.A;
        final int panel = X86Tiles.PANEL;
        final int sums = X86Tiles.SUMS;
        final int pitch = X86Tiles.PITCH;
        final int b = X86Tiles.B;
        final int lowerSums = R10;
        final int left = R11;
        final int packedPitch = RBP;
        final Label config = code.label();
        code.data(config());
        final int start = code.position();
        code.push(X86Tiles.RESUME);
        code.push(packedPitch);
        X86Tiles.loadArguments(code);
        X86Tiles.keepForNextPanel(code);
        code.ldtilecfg(config);
        code.movImm(packedPitch, REGISTER_ROW_BYTES);
        Label tile = code.label();
        code.mov(b, panel);
        code.mov(lowerSums, pitch);
        code.shl(lowerSums, 4);
        code.add(lowerSums, sums);
        loadOrClear(sums, lowerSums, pitch);
        fetchNextSums(lowerSums, pitch, left);

        Label done = new Label();
        code.mov(left, X86Tiles.DEPTH);
        code.test(left, left);
        code.j(Condition.LE, done);
        code.align(32);
        Label again = code.label();
        for (int at = 0; at < STEP_BYTES; at += REGISTER_ROW_BYTES) {
            code.prefetcht0(a, AHEAD_BYTES + at);
        }
        code.tileloadd(A_TILE, a, packedPitch, 0);
        code.tileloadd(B_TILE, b, packedPitch, 0);
        code.tdpbf16ps(0, A_TILE, B_TILE);
        code.tileloadd(B_TILE + 1, b, packedPitch, REGISTER_BYTES);
        code.tdpbf16ps(1, A_TILE, B_TILE + 1);
        code.tileloadd(A_TILE + 1, a, packedPitch, REGISTER_BYTES);
        code.tdpbf16ps(2, A_TILE + 1, B_TILE);
        code.tdpbf16ps(3, A_TILE + 1, B_TILE + 1);
        code.addImm(a, STEP_BYTES);
        code.addImm(b, STEP_BYTES);
        code.subImm(left, STEP);
        code.j(Condition.G, again);
        code.place(done);

        for (int i = 0; i < 4; i++) {
            code.tilestored(i < 2 ? sums : lowerSums, pitch, i % 2 * REGISTER_ROW_BYTES, i);
        }
        code.mov(sums, pitch);
        code.shl(sums, 4);
        code.add(sums, lowerSums);
        code.dec(X86Tiles.TILES);
        code.j(Condition.NE, tile);
        X86Tiles.nextPanel(code, tile, COLS * Float.BYTES);
        code.tilerelease();
        code.pop(packedPitch);
        code.pop(X86Tiles.RESUME);
        code.ret();
        return start;
    }

    private void loadOrClear(int sums, int lowerSums, int pitch) {
        Label done = new Label();
        for (int i = 0; i < 4; i++) {
            code.tilezero(i);
        }
        code.test(X86Tiles.RESUME, X86Tiles.RESUME);
        code.j(Condition.E, done);
        for (int i = 0; i < 4; i++) {
            code.tileloadd(i, i < 2 ? sums : lowerSums, pitch, i % 2 * REGISTER_ROW_BYTES);
        }
        code.place(done);
    }

    /** Prefetches the next tile's sums, which may be far away. */
    private void fetchNextSums(int lowerSums, int pitch, int row) {
        code.mov(row, pitch);
        code.shl(row, 4);
        code.add(row, lowerSums);
        for (int i = 0; i < ROWS; i++) {
            code.prefetcht0(row, 0);
            code.prefetcht0(row, REGISTER_ROW_BYTES);
            code.add(row, pitch);
        }
    }

    /** What LDTILECFG reads: palette 1, and 16 rows of 64 bytes for each register. */
    private static byte[] config() {
        byte[] config = new byte[64];
        config[0] = 1;
        for (int i = 0; i < REGISTERS; i++) {
            config[16 + 2 * i] = REGISTER_ROW_BYTES;
            config[48 + i] = REGISTER_ROWS;
        }
        return config;
    }

    /**
     * Packs row after row, so that A is read in its own order; a masked load touches nothing past a
     * row.
     */
    private int pack() {
        code.align(64);
        final int start = code.position();
        final int row = X86Tiles.PACK_ROW;
        final int packedRow = X86Tiles.PACK_TARGET;
        final int depth = X86Tiles.PACK_DEPTH;
        final int rowsLeft = R11;
        final int from = RAX;
        final int to = RSI;
        final int left = RCX;
        final int mask = 1;
        X86Tiles.loadPackArguments(code);
        code.mov(RAX, depth);
        code.andImm(RAX, STEP - 1);
        code.movImm(RSI, -1);
        code.bzhi32(RSI, RSI, RAX);
        code.kmov32(mask, RSI);

        Label tile = code.label();
        code.movImm(rowsLeft, ROWS);
        Label nextRow = code.label();
        Label rest = new Label();
        Label done = new Label();
        Label isLast = new Label();
        code.mov(from, row);
        code.mov(to, packedRow);
        code.mov(left, depth);
        code.subImm(left, STEP);
        code.j(Condition.L, rest);
        Label again = code.label();
        code.vmovups(0, from, 0);
        code.vmovupsStore(to, 0, 0);
        code.addImm(from, STEP * Short.BYTES);
        code.addImm(to, STEP_BYTES);
        code.subImm(left, STEP);
        code.j(Condition.GE, again);
        code.place(rest);
        code.addImm(left, STEP);
        code.j(Condition.E, done);
        code.loadMasked16(0, mask, from, 0);
        code.vmovupsStore(to, 0, 0);
        code.addImm(to, STEP_BYTES);
        code.place(done);

        code.addImm(packedRow, REGISTER_ROW_BYTES);
        code.dec(X86Tiles.PACK_COUNT);
        code.j(Condition.LE, isLast);
        code.add(row, X86Tiles.PACK_PITCH);
        code.place(isLast);
        code.dec(rowsLeft);
        code.j(Condition.NE, nextRow);
        // The last row ends with the tile.
        code.mov(packedRow, to);
        code.addImm(packedRow, -(ROWS - 1) * REGISTER_ROW_BYTES);
        code.test(X86Tiles.PACK_COUNT, X86Tiles.PACK_COUNT);
        code.j(Condition.G, tile);
        code.vzeroupper();
        code.ret();
        return start;
    }
}
