package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.R10;
import static dev.weft.gemm.code.X86Assembler.R8;
import static dev.weft.gemm.code.X86Assembler.R9;
import static dev.weft.gemm.code.X86Assembler.RAX;
import static dev.weft.gemm.code.X86Assembler.RCX;
import static dev.weft.gemm.code.X86Assembler.RDI;
import static dev.weft.gemm.code.X86Assembler.RDX;
import static dev.weft.gemm.code.X86Assembler.RSI;

import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import java.util.List;
import java.util.Map;

/** Writes epilogues for x86_64, with AVX2 and FMA or with AVX-512F. */
final class X86Epilogues extends EpilogueWriter {

    private static final int TABLE = RSI;
    private static final int TARGET = RDX;

    /** The arguments, and then how many elements are left. */
    private static final int COUNT = RCX;

    /** The memory that places count from, and then where the source is. */
    private static final int SOURCE = RDI;

    private static final int FACTORS = R8;
    private static final int BIAS = R9;
    private static final int RESIDUAL = R10;

    private static final Map<Name, Integer> OPERANDS =
            Map.of(
                    Name.FACTORS, FACTORS,
                    Name.BIAS, BIAS,
                    Name.RESIDUAL, RESIDUAL,
                    Name.SOURCE, SOURCE);

    private final X86Assembler code;

    /** Bytes of the floats that make a vector of doubles. */
    private final int bytes;

    /** Computed side by side, since most instructions wait for the one before. */
    private final int vectors;

    /** For vectors of 256 or 512 bits. */
    X86Epilogues(int vectorBits) {
        super(vectorBits / Double.SIZE);
        this.code = new X86Assembler(vectorBits);
        this.bytes = vectorBits / Double.SIZE * Float.BYTES;
        this.vectors = (vectorBits == 512 ? 32 : 16) / REGISTERS;
    }

    @Override
    void function(Runnable body) {
        for (Name operand : List.of(Name.FACTORS, Name.BIAS, Name.RESIDUAL)) {
            code.movLoad(OPERANDS.get(operand), COUNT, operand.offset());
            code.add(OPERANDS.get(operand), SOURCE);
        }
        code.movLoad(RAX, COUNT, Name.SOURCE.offset());
        code.add(SOURCE, RAX);
        code.movLoad(RAX, COUNT, Name.TARGET.offset());
        code.add(TARGET, RAX);
        code.movLoad(COUNT, COUNT, Name.COUNT.offset());
        Label again = code.label();
        body.run();
        for (int place : List.of(TARGET, SOURCE, FACTORS, BIAS, RESIDUAL)) {
            code.addImm(place, vectors * bytes);
        }
        code.subImm(COUNT, vectors * bytes / Float.BYTES);
        code.j(Condition.G, again);
        code.vzeroupper();
        code.ret();
    }

    @Override
    byte[] code() {
        return code.code();
    }

    private interface Instructions {

        /**
         * For one of the vectors.
         *
         * @param first its first register
         */
        void write(int first, int vector);
    }

    private void each(Instructions instructions) {
        for (int v = 0; v < vectors; v++) {
            instructions.write(v * REGISTERS, v);
        }
    }

    @Override
    int vectors() {
        return vectors;
    }

    @Override
    void widen(int d, Name operand) {
        each((r, v) -> code.vcvtps2pd(r + d, OPERANDS.get(operand), v * bytes));
    }

    @Override
    void round(int d) {
        each((r, v) -> code.vcvtpd2ps(r + d, r + d));
        each((r, v) -> code.vcvtps2pd(r + d, r + d));
    }

    @Override
    void narrowTarget(int s) {
        each(
                (r, v) -> {
                    // Only the first 16 registers have half stores.
                    int half = v % 2 * REGISTERS + FREE;
                    code.vcvtpd2ps(half, r + s);
                    code.storeHalf(TARGET, v * bytes, half);
                });
    }

    @Override
    void load(int d, int constant) {
        each((r, v) -> code.vmovups(r + d, TABLE, constant));
    }

    /** The second operand is the result if one is NaN. */
    @Override
    void magnitude(int d, int s, int constant) {
        load(FREE, constant);
        each((r, v) -> code.vpsllq(r + d, r + s, 1));
        each((r, v) -> code.vpsrlq(r + d, r + d, 1));
        each((r, v) -> code.vminpd(r + d, r + FREE, r + d));
    }

    /** The second operand is the result if both are zero, or one is NaN. */
    @Override
    void atLeast(int d, int n) {
        each((r, v) -> code.vmaxpd(r + d, r + n, r + d));
    }

    @Override
    void multiply(int d, int n, int constant) {
        each((r, v) -> code.vmulpd(r + d, r + n, TABLE, constant));
    }

    @Override
    void multiplyAdd(int d, int n, int constant) {
        each((r, v) -> code.vfmadd213pd(r + d, r + n, TABLE, constant));
    }

    @Override
    void addProduct(int d, int n, int m) {
        each((r, v) -> code.vfmadd231pd(r + d, r + n, r + m));
    }

    @Override
    void addRegisters(int d, int n, int m) {
        each((r, v) -> code.vaddpd(r + d, r + n, r + m));
    }

    @Override
    void subtractRegisters(int d, int n, int m) {
        each((r, v) -> code.vsubpd(r + d, r + n, r + m));
    }

    @Override
    void multiplyRegisters(int d, int n, int m) {
        each((r, v) -> code.vmulpd(r + d, r + n, r + m));
    }

    @Override
    void divideRegisters(int d, int n, int m) {
        each((r, v) -> code.vdivpd(r + d, r + n, r + m));
    }

    @Override
    void powerOfTwo(int d, int s, int constant, int bits) {
        each((r, v) -> code.vpaddq(r + d, r + s, TABLE, constant));
        each((r, v) -> code.vpsllq(r + d, r + d, bits));
    }
}
