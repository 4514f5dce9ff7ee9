package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.R11;
import static dev.weft.gemm.code.X86Assembler.RAX;
import static dev.weft.gemm.code.X86Assembler.RBP;
import static dev.weft.gemm.code.X86Assembler.RBX;
import static dev.weft.gemm.code.X86Assembler.RCX;
import static dev.weft.gemm.code.X86Assembler.RSI;

import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import dev.weft.tensor.DType;

/** Writes what packs tiles of A for x86_64: transposes four columns of four rows at a time. */
final class X86Pack {

    /** Columns that are transposed at a time. */
    private static final int UNROLLED = 4;

    private final X86Assembler code;
    private final int tileRows;

    X86Pack(X86Assembler code, int tileRows) {
        this.code = code;
        this.tileRows = tileRows;
    }

    int write(DType type) {
        code.align(X86Tiles.LINE_BYTES);
        final int start = code.position();
        final int[] rows = {RAX, RSI, R11, RBX};
        code.push(RBX);
        code.push(RBP);
        X86Tiles.loadPackArguments(code);
        final Label tile = code.label();
        for (int first = 0; first < tileRows; first += X86Tiles.GROUP) {
            for (int r = 0; r < X86Tiles.GROUP; r++) {
                Label isLast = new Label();
                if (first + r > 0) {
                    code.cmpImm(X86Tiles.PACK_COUNT, first + r + 1);
                    code.j(Condition.L, isLast);
                    code.add(X86Tiles.PACK_ROW, X86Tiles.PACK_PITCH);
                    code.place(isLast);
                }
                code.mov(rows[r], X86Tiles.PACK_ROW);
            }
            packGroup(type, rows, first * Float.BYTES);
        }
        code.mov(X86Tiles.PACK_TARGET, RBP);
        code.add(X86Tiles.PACK_ROW, X86Tiles.PACK_PITCH);
        code.subImm(X86Tiles.PACK_COUNT, tileRows);
        code.j(Condition.G, tile);
        code.pop(RBP);
        code.pop(RBX);
        code.vzeroupper();
        code.ret();
        return start;
    }

    /** Packs four rows; {@code offset} is theirs in a packed column. */
    private void packGroup(DType type, int[] rows, int offset) {
        final int to = RBP;
        final int left = RCX;
        Label rest = new Label();
        Label done = new Label();
        code.mov(to, X86Tiles.PACK_TARGET);
        code.mov(left, X86Tiles.PACK_DEPTH);
        code.subImm(left, UNROLLED);
        code.j(Condition.L, rest);
        Label again = code.label();
        for (int r = 0; r < X86Tiles.GROUP; r++) {
            loadFour(type, r, rows[r]);
            code.addImm(rows[r], UNROLLED * type.bytes());
        }
        code.unpackLow(4, 0, 2);
        code.unpackLow(5, 1, 3);
        code.unpackHigh(6, 0, 2);
        code.unpackHigh(7, 1, 3);
        code.unpackLow(0, 4, 5);
        code.unpackHigh(1, 4, 5);
        code.unpackLow(2, 6, 7);
        code.unpackHigh(3, 6, 7);
        for (int k = 0; k < UNROLLED; k++) {
            code.storeFour(to, k * tileRows * Float.BYTES + offset, k);
        }
        code.addImm(to, UNROLLED * tileRows * Float.BYTES);
        code.subImm(left, UNROLLED);
        code.j(Condition.GE, again);
        code.place(rest);
        code.addImm(left, UNROLLED);
        code.j(Condition.LE, done);
        Label one = code.label();
        for (int r = 0; r < X86Tiles.GROUP; r++) {
            loadOne(type, rows[r]);
            code.addImm(rows[r], type.bytes());
            code.storeOne(to, offset + r * Float.BYTES, 0);
        }
        code.addImm(to, tileRows * Float.BYTES);
        code.dec(left);
        code.j(Condition.NE, one);
        code.place(done);
    }

    private void loadFour(DType type, int to, int from) {
        switch (type) {
            case FP32 -> code.loadFour(to, from, 0);
            case FP16 -> code.widenFp16(to, from, 0);
            case BF16 -> {
                code.widen16(to, from, 0);
                code.shiftLeft(to, to, Short.SIZE);
            }
            case E4M3, E5M2 -> throw new IllegalArgumentException(type.label());
        }
    }

    /** Loads one element into register 0. */
    private void loadOne(DType type, int from) {
        switch (type) {
            case FP32 -> code.loadOne(0, from, 0);
            case FP16 -> {
                code.zero(0);
                code.insert16(0, 0, from, 0, 0);
                code.widenFp16(0, 0);
            }
            case BF16 -> {
                code.zero(0);
                // The upper half of an fp32 is a bf16.
                code.insert16(0, 0, from, 0, 1);
            }
            case E4M3, E5M2 -> throw new IllegalArgumentException(type.label());
        }
    }
}
