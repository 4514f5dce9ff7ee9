package dev.weft.gemm.code;

import java.io.IOException;
import org.junit.jupiter.api.Test;

/** The instructions of {@link EpilogueWriter}s against the GNU assembler's bytes. */
class EpilogueInstructionsTest {

    private static final String[] NAMES = {"rdi", "rsp", "rbp", "r12", "r13", "r8"};
    private static final int[] BASES = {7, 4, 5, 12, 13, 8};
    private static final int[] OFFSETS = {0, 4, -64, 508, 512, 8128, -8192, 100, 132};
    private static final int[] REGISTERS = {0, 5, 15, 16, 26, 31};

    @Test
    void vectorsOf256Bits() throws IOException {
        ofX86(256).check("avx2-doubles.txt", () -> new X86Assembler(256));
    }

    @Test
    void vectorsOf512Bits() throws IOException {
        ofX86(512).check("avx512-doubles.txt", () -> new X86Assembler(512));
    }

    private static EncodingTable<X86Assembler> ofX86(int bits) {
        EncodingTable<X86Assembler> table = new EncodingTable<>();
        boolean wide = bits == 512;
        String kind = wide ? "zmm" : "ymm";
        String halfKind = wide ? "ymm" : "xmm";
        int count = wide ? 32 : 16;
        for (int i = 0; i < OFFSETS.length; i++) {
            int base = BASES[i % BASES.length];
            int offset = OFFSETS[i];
            int d = 5 * i % count;
            int n = (3 + 7 * i) % count;
            int m = (9 * i + 6) % count;
            int shift = 6 * i + 1;
            String sign = offset < 0 ? "" : "+";
            String at = "[" + NAMES[i % NAMES.length] + (offset == 0 ? "" : sign + offset) + "]";
            String one = kind + d;
            String two = one + ", " + kind + n;
            String three = two + ", " + kind + m;
            String half = wide ? "YMMWORD PTR " + at : "XMMWORD PTR " + at;
            String whole = wide ? "ZMMWORD PTR " + at : "YMMWORD PTR " + at;
            table.add("vcvtps2pd " + one + ", " + half, a -> a.vcvtps2pd(d, base, offset));
            table.add("vcvtpd2ps " + halfKind + d + ", " + kind + n, a -> a.vcvtpd2ps(d, n));
            table.add("vcvtps2pd " + one + ", " + halfKind + n, a -> a.vcvtps2pd(d, n));
            int low = d % 16;
            table.add(
                    "vmovups " + half + ", " + halfKind + low, a -> a.storeHalf(base, offset, low));
            table.add("vaddpd " + three, a -> a.vaddpd(d, n, m));
            table.add("vmulpd " + three, a -> a.vmulpd(d, n, m));
            table.add("vmulpd " + two + ", " + whole, a -> a.vmulpd(d, n, base, offset));
            table.add("vsubpd " + three, a -> a.vsubpd(d, n, m));
            table.add("vminpd " + three, a -> a.vminpd(d, n, m));
            table.add("vmaxpd " + three, a -> a.vmaxpd(d, n, m));
            table.add("vdivpd " + three, a -> a.vdivpd(d, n, m));
            table.add("vfmadd231pd " + three, a -> a.vfmadd231pd(d, n, m));
            table.add("vfmadd213pd " + two + ", " + whole, a -> a.vfmadd213pd(d, n, base, offset));
            table.add("vpaddq " + two + ", " + whole, a -> a.vpaddq(d, n, base, offset));
            table.add("vpsllq " + two + ", " + shift, a -> a.vpsllq(d, n, shift));
            table.add("vpsrlq " + two + ", " + shift, a -> a.vpsrlq(d, n, shift));
        }
        return table;
    }

    @Test
    void aarch64() throws IOException {
        EncodingTable<A64Assembler> table = new EncodingTable<>();
        for (int i = 0; i < REGISTERS.length; i++) {
            int d = REGISTERS[i];
            int n = REGISTERS[(i + 1) % REGISTERS.length];
            int m = REGISTERS[(i + 2) % REGISTERS.length];
            String two = " v%d.2d, v%d.2d".formatted(d, n);
            String three = two + ", v%d.2d".formatted(m);
            table.add("fcvtl v%d.2d, v%d.2s".formatted(d, n), a -> a.widenFloats(d, n));
            table.add("fcvtn v%d.2s, v%d.2d".formatted(d, n), a -> a.narrowDoubles(d, n));
            table.add("fabs" + two, a -> a.fabsDoubles(d, n));
            table.add("fmin" + three, a -> a.fminDoubles(d, n, m));
            table.add("fmax" + three, a -> a.fmaxDoubles(d, n, m));
            table.add("fadd" + three, a -> a.faddDoubles(d, n, m));
            table.add("fsub" + three, a -> a.fsubDoubles(d, n, m));
            table.add("fmul" + three, a -> a.fmulDoubles(d, n, m));
            table.add("fdiv" + three, a -> a.fdivDoubles(d, n, m));
            table.add("fmla" + three, a -> a.fmlaDoubles(d, n, m));
            table.add("add" + three, a -> a.addLongs(d, n, m));
            int shift = 12 * i + 3;
            table.add("shl" + two + ", #" + shift, a -> a.shlLongs(d, n, shift));
            int base = i;
            int offset = 6552 * i;
            table.add(
                    "str d%d, [x%d, #%d]".formatted(d, base, offset), a -> a.strD(d, base, offset));
        }
        table.check("a64-doubles.txt", A64Assembler::new);
    }
}
