package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.RSP;

import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import dev.weft.tensor.DType;

/**
 * Writes sums with so few columns of B for x86_64 that a vector of them would be mostly empty: a
 * vector has a column's sums of as many rows as it has lanes. As many elements of these rows are
 * transposed in registers, so the elements of one k are in one vector.
 */
final class X86RowsInLanes extends X86InPlace {

    /**
     * How far ahead of its use a row of A is prefetched. Measured with 4096 x 4096 x 1 from memory,
     * AVX-512: 512 1.00, 128 0.97, 1024 0.95, 2048 0.93, 4096 0.72.
     */
    private static final int AHEAD_BYTES = 512;

    private final boolean wide;

    /** A register that holds nothing; each step of a transposition moves it on. */
    private int free;

    /** Two vectors into two others. */
    private interface Instruction {
        void write(int d, int n, int m);
    }

    X86RowsInLanes(X86Tiles tiles) {
        super(tiles);
        this.wide = lanes == 16;
    }

    /** Sums of all lanes' rows at a time; the last row is repeated up to a multiple. */
    int sum(DType type, int cols) {
        return function(
                lanes,
                lanes,
                () -> {
                    loadOrClear(cols);
                    steps(type, cols);
                    storeSums(cols);
                });
    }

    /** Above the rows' registers and a free one. */
    private int sumRegister(int col) {
        return lanes + 1 + col;
    }

    private int elementRegister(int cols) {
        return sumRegister(cols);
    }

    private void loadOrClear(int cols) {
        Label done = new Label();
        for (int col = 0; col < cols; col++) {
            code.zero(sumRegister(col));
        }
        code.test(X86Tiles.RESUME, X86Tiles.RESUME);
        code.j(Condition.E, done);
        code.mov(X86Tiles.SUM_ROW, X86Tiles.SUMS);
        for (int r = 0; r < lanes; r++) {
            for (int col = 0; col < cols; col++) {
                code.loadOne(0, X86Tiles.SUM_ROW, col * Float.BYTES);
                code.storeOne(RSP, col * vectorBytes + r * Float.BYTES, 0);
            }
            code.add(X86Tiles.SUM_ROW, X86Tiles.PITCH);
        }
        for (int col = 0; col < cols; col++) {
            code.vmovups(sumRegister(col), RSP, col * vectorBytes);
        }
        code.place(done);
    }

    /** Stores the sums, and goes on to the rows below them. */
    private void storeSums(int cols) {
        for (int col = 0; col < cols; col++) {
            code.vmovupsStore(RSP, col * vectorBytes, sumRegister(col));
        }
        for (int r = 0; r < lanes; r++) {
            for (int col = 0; col < cols; col++) {
                code.loadOne(0, RSP, col * vectorBytes + r * Float.BYTES);
                code.storeOne(X86Tiles.SUMS, col * Float.BYTES, 0);
            }
            code.add(X86Tiles.SUMS, X86Tiles.PITCH);
        }
    }

    /** At least as many steps as a vector has lanes. */
    private void steps(DType type, int cols) {
        final int left = X86Tiles.STEPS;
        final int panelRow = tiles.panelRowBytes(DType.FP32);
        final Label done = new Label();
        code.movImm(OFFSET, 0);
        code.mov(left, X86Tiles.DEPTH);
        code.subImm(left, lanes);
        code.align(32);
        Label again = code.label();
        int[] elements = loadTransposed(type);
        for (int k = 0; k < lanes; k++) {
            multiply(elements[k], k * panelRow, cols);
        }
        code.addImm(OFFSET, lanes * type.bytes());
        code.addImm(X86Tiles.B, lanes * panelRow);
        code.subImm(left, lanes);
        code.j(Condition.GE, again);

        // The rest are the last elements of the vector that ends with the row.
        backToLast(type, left, done);
        int[] last = loadTransposed(type);
        for (int k = 0; k < lanes; k++) {
            code.vmovupsStore(RSP, k * vectorBytes, last[k]);
        }
        code.mov(ROW, left);
        code.shl(ROW, Integer.numberOfTrailingZeros(vectorBytes));
        code.mov(THIS, RSP);
        code.addImm(THIS, lanes * vectorBytes);
        code.sub(THIS, ROW);
        Label one = code.label();
        code.vmovups(0, THIS, 0);
        multiply(0, 0, cols);
        code.addImm(THIS, vectorBytes);
        code.addImm(X86Tiles.B, panelRow);
        code.dec(left);
        code.j(Condition.NE, one);
        code.place(done);
    }

    /** The multiply-adds of one k of all rows. */
    private void multiply(int elements, int fromB, int cols) {
        for (int col = 0; col < cols; col++) {
            int at = fromB + col * Float.BYTES;
            if (wide) {
                code.vfmadd231psBroadcast(sumRegister(col), elements, X86Tiles.B, at);
            } else {
                code.vbroadcastss(elementRegister(cols), X86Tiles.B, at);
                code.vfmadd231ps(sumRegister(col), elements, elementRegister(cols));
            }
        }
    }

    /** The registers that hold the elements of all rows, by k. */
    private int[] loadTransposed(DType type) {
        int[] rows = new int[lanes];
        for (int r = 0; r < lanes; r++) {
            rows[r] = r;
            loadElements(type, r, r, AHEAD_BYTES);
        }
        free = lanes;
        // Four rows by four k in each 128 bits: afterwards fours[4 i + j] has k = j of each four k
        // of
        // the four rows i.
        int[] fours = new int[lanes];
        for (int i = 0; i < lanes; i += 4) {
            int[] first = pair(rows[i], rows[i + 1], code::vunpcklps, code::vunpckhps);
            int[] second = pair(rows[i + 2], rows[i + 3], code::vunpcklps, code::vunpckhps);
            int[] low = pair(first[0], second[0], code::vunpcklpd, code::vunpckhpd);
            int[] high = pair(first[1], second[1], code::vunpcklpd, code::vunpckhpd);
            System.arraycopy(low, 0, fours, i, 2);
            System.arraycopy(high, 0, fours, i + 2, 2);
        }
        int[] byK = new int[lanes];
        for (int j = 0; j < 4; j++) {
            if (!wide) {
                int[] both = pair(fours[j], fours[4 + j], halves(0x20), halves(0x31));
                byK[j] = both[0];
                byK[4 + j] = both[1];
                continue;
            }
            int[] upper = quarters(fours[j], fours[4 + j]);
            int[] lower = quarters(fours[8 + j], fours[12 + j]);
            int[] even = quarters(upper[0], lower[0]);
            int[] odd = quarters(upper[1], lower[1]);
            byK[j] = even[0];
            byK[4 + j] = odd[0];
            byK[8 + j] = even[1];
            byK[12 + j] = odd[1];
        }
        return byK;
    }

    private Instruction halves(int choice) {
        return (d, n, m) -> code.vperm2f128(d, n, m, choice);
    }

    /** The even quarters of two vectors in one, the odd ones in another. */
    private int[] quarters(int x, int y) {
        return pair(
                x,
                y,
                (d, n, m) -> code.vshuff32x4(d, n, m, 0x88),
                (d, n, m) -> code.vshuff32x4(d, n, m, 0xDD));
    }

    /** The registers of what two instructions make of x and y, whose registers are used again. */
    private int[] pair(int x, int y, Instruction first, Instruction second) {
        int target = free;
        first.write(target, x, y);
        second.write(x, x, y);
        free = y;
        return new int[] {target, x};
    }
}
