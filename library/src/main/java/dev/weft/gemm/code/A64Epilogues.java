package dev.weft.gemm.code;

import dev.weft.gemm.code.A64Assembler.Condition;
import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Writes epilogues for aarch64. A multiply-add of this processor adds to its target, so a constant
 * is loaded where the next result is wanted, and that register changes its number.
 */
final class A64Epilogues extends EpilogueWriter {

    /** The memory that places count from, and then where the source is. */
    private static final int SOURCE = 0;

    private static final int TABLE = 1;
    private static final int TARGET = 2;

    /** The arguments, and then how many elements are left. */
    private static final int COUNT = 3;

    private static final int FACTORS = 4;
    private static final int BIAS = 5;
    private static final int RESIDUAL = 6;
    private static final int PLACE = 7;

    private static final Map<Name, Integer> OPERANDS =
            Map.of(
                    Name.FACTORS, FACTORS,
                    Name.BIAS, BIAS,
                    Name.RESIDUAL, RESIDUAL,
                    Name.SOURCE, SOURCE);

    private static final int LANES = 2;
    private static final int BYTES = LANES * Float.BYTES;

    /** Registers that a function need not keep for its caller. */
    private static final int[][] OF_VECTORS = {
        {0, 1, 2, 3, 4, 5, 6, 7},
        {16, 17, 18, 19, 20, 21, 22, 23}
    };

    private final A64Assembler code = new A64Assembler();

    /** Of each vector, by {@link EpilogueWriter}'s numbers. */
    private final int[][] registers =
            Arrays.stream(OF_VECTORS).map(int[]::clone).toArray(int[][]::new);

    A64Epilogues() {
        super(LANES);
    }

    @Override
    void function(Runnable body) {
        for (Name operand : List.of(Name.FACTORS, Name.BIAS, Name.RESIDUAL, Name.SOURCE)) {
            code.ldrX(PLACE, COUNT, operand.offset());
            code.add(OPERANDS.get(operand), SOURCE, PLACE, 0);
        }
        code.ldrX(PLACE, COUNT, Name.TARGET.offset());
        code.add(TARGET, TARGET, PLACE, 0);
        code.ldrX(COUNT, COUNT, Name.COUNT.offset());
        Label again = code.label();
        body.run();
        for (int place : List.of(TARGET, SOURCE, FACTORS, BIAS, RESIDUAL)) {
            code.addImm(place, place, registers.length * BYTES);
        }
        code.subsImm(COUNT, COUNT, registers.length * LANES);
        code.b(Condition.GT, again);
        code.ret();
    }

    @Override
    byte[] code() {
        return code.code();
    }

    private void each(Consumer<int[]> instructions) {
        for (int[] r : registers) {
            instructions.accept(r);
        }
    }

    @Override
    int vectors() {
        return registers.length;
    }

    @Override
    void widen(int d, Name operand) {
        for (int v = 0; v < registers.length; v++) {
            code.ldrD(registers[v][d], OPERANDS.get(operand), v * BYTES);
        }
        each(r -> code.widenFloats(r[d], r[d]));
    }

    @Override
    void round(int d) {
        each(r -> code.narrowDoubles(r[d], r[d]));
        each(r -> code.widenFloats(r[d], r[d]));
    }

    @Override
    void narrowTarget(int s) {
        each(r -> code.narrowDoubles(r[s], r[s]));
        for (int v = 0; v < registers.length; v++) {
            code.strD(registers[v][s], TARGET, v * BYTES);
        }
    }

    @Override
    void load(int d, int constant) {
        each(r -> code.ldrQ(r[d], TABLE, constant));
    }

    @Override
    void magnitude(int d, int s, int constant) {
        load(FREE, constant);
        each(r -> code.fabsDoubles(r[d], r[s]));
        each(r -> code.fminDoubles(r[d], r[d], r[FREE]));
    }

    @Override
    void atLeast(int d, int n) {
        each(r -> code.fmaxDoubles(r[d], r[d], r[n]));
    }

    @Override
    void multiply(int d, int n, int constant) {
        load(FREE, constant);
        each(r -> code.fmulDoubles(r[d], r[n], r[FREE]));
    }

    @Override
    void multiplyAdd(int d, int n, int constant) {
        load(FREE, constant);
        addProduct(FREE, d, n);
        each(
                r -> {
                    int result = r[FREE];
                    r[FREE] = r[d];
                    r[d] = result;
                });
    }

    @Override
    void addProduct(int d, int n, int m) {
        each(r -> code.fmlaDoubles(r[d], r[n], r[m]));
    }

    @Override
    void addRegisters(int d, int n, int m) {
        each(r -> code.faddDoubles(r[d], r[n], r[m]));
    }

    @Override
    void subtractRegisters(int d, int n, int m) {
        each(r -> code.fsubDoubles(r[d], r[n], r[m]));
    }

    @Override
    void multiplyRegisters(int d, int n, int m) {
        each(r -> code.fmulDoubles(r[d], r[n], r[m]));
    }

    @Override
    void divideRegisters(int d, int n, int m) {
        each(r -> code.fdivDoubles(r[d], r[n], r[m]));
    }

    @Override
    void powerOfTwo(int d, int s, int constant, int bits) {
        load(FREE, constant);
        each(r -> code.addLongs(r[d], r[s], r[FREE]));
        each(r -> code.shlLongs(r[d], r[d], bits));
    }
}
