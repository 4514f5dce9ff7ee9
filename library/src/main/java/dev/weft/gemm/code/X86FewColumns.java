package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.R10;
import static dev.weft.gemm.code.X86Assembler.R12;
import static dev.weft.gemm.code.X86Assembler.R13;
import static dev.weft.gemm.code.X86Assembler.R14;
import static dev.weft.gemm.code.X86Assembler.R15;
import static dev.weft.gemm.code.X86Assembler.RBP;
import static dev.weft.gemm.code.X86Assembler.RBX;
import static dev.weft.gemm.code.X86Assembler.RSP;

import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import dev.weft.tensor.DType;

/**
 * Writes sums with one panel of B for x86_64, which read rows of A where they are. A vector of each
 * row is widened and copied to the stack while the ones before are multiplied, and its elements are
 * broadcast from there: so memory is read all the time, any type takes the same multiply-adds, and
 * rows whose length is a power of two do not share places in the nearest cache.
 */
final class X86FewColumns {

    /** How far ahead of its use a row of A is prefetched. */
    private static final int AHEAD_BYTES = 512;

    private static final int OFFSET = R12;
    private static final int A_PITCH = R13;
    private static final int THIS = R14;
    private static final int NEXT = R15;
    private static final int ROW = R10;

    private final X86Tiles tiles;
    private final X86Assembler code;
    private final int vectorBytes;
    private final int lanes;

    X86FewColumns(X86Tiles tiles) {
        this.tiles = tiles;
        this.code = tiles.code;
        this.vectorBytes = tiles.vectorBytes;
        this.lanes = vectorBytes / Float.BYTES;
    }

    /**
     * Sums of {@code rows} x {@code vectors} at a time, and as many rows as are wanted; the last of
     * them is repeated up to a multiple.
     */
    int sum(DType type, int rows, int vectors) {
        final int[] saved = {RBX, RBP, OFFSET, A_PITCH, THIS, NEXT};
        final int count = X86Tiles.TILES;
        final int pointers = 2 * rows * vectorBytes;
        code.align(X86Tiles.LINE_BYTES);
        final int start = code.position();
        for (int register : saved) {
            code.push(register);
        }
        code.movLoad(A_PITCH, X86Tiles.ARGUMENTS, Name.A_PITCH.offset());
        X86Tiles.loadArguments(code);
        code.mov(RBP, RSP);
        code.addImm(RSP, -pointers - rows * Long.BYTES);
        code.andImm(RSP, -X86Tiles.LINE_BYTES);

        final Label tile = code.label();
        code.mov(X86Tiles.B, X86Tiles.PANEL);
        for (int r = 0; r < rows; r++) {
            code.movStore(RSP, pointers + r * Long.BYTES, X86Tiles.A);
            Label isLast = new Label();
            code.dec(count);
            code.j(Condition.LE, isLast);
            code.add(X86Tiles.A, A_PITCH);
            code.place(isLast);
        }
        tiles.loadOrClear(rows, vectors);
        steps(type, rows, vectors);
        tiles.storeSums(rows, vectors);
        code.test(count, count);
        code.j(Condition.G, tile);

        code.mov(RSP, RBP);
        for (int i = saved.length - 1; i >= 0; i--) {
            code.pop(saved[i]);
        }
        code.vzeroupper();
        code.ret();
        return start;
    }

    /** At least as many steps as a vector has lanes. */
    private void steps(DType type, int rows, int vectors) {
        final int left = X86Tiles.STEPS;
        final Label last = new Label();
        final Label done = new Label();
        code.movImm(OFFSET, 0);
        code.mov(THIS, RSP);
        code.mov(NEXT, RSP);
        code.addImm(NEXT, rows * vectorBytes);
        copyVectors(type, rows, 0, rows, THIS);
        code.addImm(OFFSET, lanes * type.bytes());
        code.mov(left, X86Tiles.DEPTH);
        code.subImm(left, 2 * lanes);
        code.j(Condition.L, last);
        code.align(32);
        Label again = code.label();
        for (int k = 0; k < lanes; k++) {
            tiles.step(DType.FP32, k, rows, vectors, THIS, k * Float.BYTES, vectorBytes);
            copyVectors(type, rows, k * rows / lanes, (k + 1) * rows / lanes, NEXT);
        }
        code.addImm(OFFSET, lanes * type.bytes());
        code.addImm(X86Tiles.B, lanes * tiles.panelRowBytes(DType.FP32));
        code.mov(ROW, THIS);
        code.mov(THIS, NEXT);
        code.mov(NEXT, ROW);
        code.subImm(left, lanes);
        code.j(Condition.GE, again);
        code.place(last);
        for (int k = 0; k < lanes; k++) {
            tiles.step(DType.FP32, k, rows, vectors, THIS, k * Float.BYTES, vectorBytes);
        }
        code.addImm(X86Tiles.B, lanes * tiles.panelRowBytes(DType.FP32));

        // The rest are the last elements of the vector that ends with the row.
        code.addImm(left, lanes);
        code.j(Condition.E, done);
        code.mov(ROW, left);
        code.subImm(ROW, lanes);
        code.shl(ROW, Integer.numberOfTrailingZeros(type.bytes()));
        code.add(OFFSET, ROW);
        copyVectors(type, rows, 0, rows, THIS);
        code.mov(ROW, left);
        code.shl(ROW, 2);
        code.addImm(THIS, vectorBytes);
        code.sub(THIS, ROW);
        Label one = code.label();
        tiles.step(DType.FP32, 0, rows, vectors, THIS, 0, vectorBytes);
        code.addImm(THIS, Float.BYTES);
        code.addImm(X86Tiles.B, tiles.panelRowBytes(DType.FP32));
        code.dec(left);
        code.j(Condition.NE, one);
        code.place(done);
    }

    /** Copies a vector of each of some rows to the stack, widened. */
    private void copyVectors(DType type, int rows, int from, int to, int buffer) {
        for (int r = from; r < to; r++) {
            code.movLoad(ROW, RSP, 2 * rows * vectorBytes + r * Long.BYTES);
            code.add(ROW, OFFSET);
            tiles.loadVector(type, tiles.lastRegister(), ROW, 0);
            code.prefetcht0(ROW, AHEAD_BYTES);
            code.vmovupsStore(buffer, r * vectorBytes, tiles.lastRegister());
        }
    }
}
