package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.RSP;

import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import dev.weft.tensor.DType;

/**
 * Writes sums with one panel of B for x86_64, which read rows of A where they are. A vector of each
 * row is widened and copied to the stack while the ones before are multiplied, and its elements are
 * broadcast from there: so memory is read all the time, any type takes the same multiply-adds, and
 * rows whose length is a power of two do not share places in the nearest cache.
 */
final class X86FewColumns extends X86InPlace {

    /** How far ahead of its use a row of A is prefetched. */
    private static final int AHEAD_BYTES = 512;

    X86FewColumns(X86Tiles tiles) {
        super(tiles);
    }

    /**
     * Sums of {@code rows} x {@code vectors} at a time, and as many rows as are wanted; the last of
     * them is repeated up to a multiple.
     */
    int sum(DType type, int rows, int vectors) {
        return function(
                rows,
                2 * rows,
                () -> {
                    tiles.loadOrClear(rows, vectors);
                    steps(type, rows, vectors);
                    tiles.storeSums(rows, vectors);
                });
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
        copyVectors(type, 0, rows, THIS);
        code.addImm(OFFSET, lanes * type.bytes());
        code.mov(left, X86Tiles.DEPTH);
        code.subImm(left, 2 * lanes);
        code.j(Condition.L, last);
        code.align(32);
        Label again = code.label();
        for (int k = 0; k < lanes; k++) {
            tiles.step(DType.FP32, k, rows, vectors, THIS, k * Float.BYTES, vectorBytes);
            copyVectors(type, k * rows / lanes, (k + 1) * rows / lanes, NEXT);
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
        backToLast(type, left, done);
        copyVectors(type, 0, rows, THIS);
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
    private void copyVectors(DType type, int from, int to, int buffer) {
        for (int r = from; r < to; r++) {
            loadElements(type, r, tiles.lastRegister(), AHEAD_BYTES);
            code.vmovupsStore(buffer, r * vectorBytes, tiles.lastRegister());
        }
    }
}
