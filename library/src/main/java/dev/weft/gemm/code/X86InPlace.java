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
 * What sums for x86_64 that read rows of A where they are have in common. On the stack are vectors,
 * and behind them the addresses of a tile's rows, the last of which is repeated.
 */
abstract class X86InPlace {

    /** Bytes from a row's begin to its next elements. */
    static final int OFFSET = R12;

    static final int A_PITCH = R13;
    static final int THIS = R14;
    static final int NEXT = R15;
    static final int ROW = R10;

    final X86Tiles tiles;
    final X86Assembler code;
    final int vectorBytes;
    final int lanes;

    private int addresses;

    X86InPlace(X86Tiles tiles) {
        this.tiles = tiles;
        this.code = tiles.code;
        this.vectorBytes = tiles.vectorBytes;
        this.lanes = vectorBytes / Float.BYTES;
    }

    /**
     * Writes a function; returns where it begins.
     *
     * @param rows of a tile
     * @param vectors how many there are on the stack
     * @param tile writes the sums of one tile, with the next sums in {@link X86Tiles#SUMS} after it
     */
    final int function(int rows, int vectors, Runnable tile) {
        final int[] saved = {RBX, RBP, OFFSET, A_PITCH, THIS, NEXT};
        final int count = X86Tiles.TILES;
        addresses = vectors * vectorBytes;
        code.align(X86Tiles.LINE_BYTES);
        final int start = code.position();
        for (int register : saved) {
            code.push(register);
        }
        code.movLoad(A_PITCH, X86Tiles.ARGUMENTS, Name.A_PITCH.offset());
        X86Tiles.loadArguments(code);
        code.mov(RBP, RSP);
        code.addImm(RSP, -addresses - rows * Long.BYTES);
        code.andImm(RSP, -X86Tiles.LINE_BYTES);

        final Label again = code.label();
        code.mov(X86Tiles.B, X86Tiles.PANEL);
        for (int r = 0; r < rows; r++) {
            code.movStore(RSP, addresses + r * Long.BYTES, X86Tiles.A);
            Label isLast = new Label();
            code.dec(count);
            code.j(Condition.LE, isLast);
            code.add(X86Tiles.A, A_PITCH);
            code.place(isLast);
        }
        tile.run();
        code.test(count, count);
        code.j(Condition.G, again);

        code.mov(RSP, RBP);
        for (int i = saved.length - 1; i >= 0; i--) {
            code.pop(saved[i]);
        }
        code.vzeroupper();
        code.ret();
        return start;
    }

    /** Loads the next elements of a row, widened, and prefetches those further on. */
    final void loadElements(DType type, int row, int into, int aheadBytes) {
        code.movLoad(ROW, RSP, addresses + row * Long.BYTES);
        code.add(ROW, OFFSET);
        tiles.loadVector(type, into, ROW, 0);
        code.prefetcht0(ROW, aheadBytes);
    }

    /**
     * Moves {@link #OFFSET} back to the vector that ends with the row, of which the last {@code
     * left} elements are still to be summed.
     *
     * @param left their number, less the lanes
     * @param none where to go on if there are none
     */
    final void backToLast(DType type, int left, Label none) {
        code.addImm(left, lanes);
        code.j(Condition.E, none);
        code.mov(ROW, left);
        code.subImm(ROW, lanes);
        code.shl(ROW, Integer.numberOfTrailingZeros(type.bytes()));
        code.add(OFFSET, ROW);
    }
}
