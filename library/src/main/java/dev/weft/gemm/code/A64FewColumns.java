package dev.weft.gemm.code;

import static dev.weft.gemm.code.A64Assembler.SP;
import static dev.weft.gemm.code.A64Assembler.ZERO;

import dev.weft.gemm.code.A64Assembler.Condition;
import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;
import dev.weft.tensor.DType;

/**
 * Writes sums with one panel of B for aarch64, which read rows of A where they are: the
 * multiply-add by element takes four elements of a row as they are in memory, one after the other.
 */
final class A64FewColumns {

    /** Where the pitch of A is kept on the stack, behind the caller's registers. */
    private static final int A_PITCH_AT = 64;

    private final A64Tiles tiles;
    private final A64Assembler code;

    A64FewColumns(A64Tiles tiles, A64Assembler code) {
        this.tiles = tiles;
        this.code = code;
    }

    /**
     * Sums of {@code rows} x {@code vectors} at a time, and as many rows as are wanted; the last of
     * them is repeated up to a multiple.
     */
    int sum(DType type, int rows, int vectors) {
        final int left = A64Tiles.TILES;
        final int pitch = A64Tiles.B;
        code.align(64);
        final int start = code.position();
        tiles.begin(Name.A_PITCH);
        code.strX(A64Tiles.COUNT, SP, A_PITCH_AT);

        final Label tile = code.label();
        loadOrClear(rows, vectors);
        code.ldrX(pitch, SP, A_PITCH_AT);
        for (int r = 0; r < rows; r++) {
            code.mov(A64Tiles.FIRST_ROW + r, A64Tiles.A);
            code.add(A64Tiles.COUNT, A64Tiles.A, pitch, 0);
            code.subsImm(left, left, 1);
            code.csel(A64Tiles.A, A64Tiles.COUNT, A64Tiles.A, Condition.GT);
        }
        code.mov(A64Tiles.B, A64Tiles.PANEL);
        loop(type, A64Tiles.TURNS, rows, vectors, A64Tiles.LANES);
        loop(type, A64Tiles.REST, rows, vectors, 1);
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < vectors; v++) {
                int sum = sumRegister(rows, vectors, r, v);
                code.strQ(sum, A64Tiles.SUMS, v * A64Tiles.VECTOR_BYTES);
            }
            code.add(A64Tiles.SUMS, A64Tiles.SUMS, A64Tiles.PITCH, 0);
        }
        code.subsImm(ZERO, left, 0);
        code.b(Condition.GT, tile);
        tiles.end();
        return start;
    }

    private void loadOrClear(int rows, int vectors) {
        Label clear = new Label();
        Label done = new Label();
        code.cbz(A64Tiles.RESUME, clear);
        code.mov(A64Tiles.COUNT, A64Tiles.SUMS);
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < vectors; v++) {
                int sum = sumRegister(rows, vectors, r, v);
                code.ldrQ(sum, A64Tiles.COUNT, v * A64Tiles.VECTOR_BYTES);
            }
            code.add(A64Tiles.COUNT, A64Tiles.COUNT, A64Tiles.PITCH, 0);
        }
        code.b(done);
        code.place(clear);
        for (int i = 0; i < rows * vectors; i++) {
            code.zero(sumRegister(rows, vectors, 0, i));
        }
        code.place(done);
    }

    /** Processes {@code step} columns of A per iteration: four, or one. */
    private void loop(DType type, int turns, int rows, int vectors, int step) {
        Label done = new Label();
        code.cbz(turns, done);
        code.mov(A64Tiles.COUNT, turns);
        Label again = code.label();
        for (int r = 0; r < rows; r++) {
            if (step == 1) {
                tiles.loadOne(type, r, A64Tiles.FIRST_ROW + r);
            } else {
                tiles.loadFour(type, r, A64Tiles.FIRST_ROW + r);
            }
        }
        for (int k = 0; k < step; k++) {
            int firstB = rows + k * vectors;
            for (int v = 0; v < vectors; v++) {
                code.ldrQ(firstB + v, A64Tiles.B, k * A64Tiles.B_STEP + v * A64Tiles.VECTOR_BYTES);
            }
            for (int r = 0; r < rows; r++) {
                for (int v = 0; v < vectors; v++) {
                    code.fmla(sumRegister(rows, vectors, r, v), firstB + v, r, k);
                }
            }
        }
        code.addImm(A64Tiles.B, A64Tiles.B, step * A64Tiles.B_STEP);
        code.subsImm(A64Tiles.COUNT, A64Tiles.COUNT, 1);
        code.b(Condition.NE, again);
        code.place(done);
    }

    /** The last registers; those before them hold rows of A and vectors of B. */
    private static int sumRegister(int rows, int vectors, int row, int vector) {
        return 32 - rows * vectors + row * vectors + vector;
    }
}
