package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import org.junit.jupiter.api.Test;

/** The instructions of {@link BlockKernel}s against the GNU assembler's bytes. */
class BlockInstructionsTest {

    private static final String[] NAMES = {
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15"
    };
    private static final int[] BASES = {7, 4, 5, 12, 13, 8};
    private static final int[] OFFSETS = {0, 4, -64, 508, 512, 8128, -8192, 100, 132};

    @Test
    void vectorsOf256Bits() throws IOException {
        ofX86(256).check("avx2-blocks.txt", () -> new X86Assembler(256));
        X86Assembler code = new X86Assembler(256);
        assertEquals(
                "only vectors of 512 bits have an operand to broadcast",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> code.vpdpbusdBroadcast(0, 1, 2, 0))
                        .getMessage());
    }

    @Test
    void vectorsOf512Bits() throws IOException {
        ofX86(512).check("avx512-blocks.txt", () -> new X86Assembler(512));
        X86Assembler code = new X86Assembler(512);
        assertEquals(
                "only vectors of 256 bits have vpsignb",
                assertThrows(IllegalArgumentException.class, () -> code.vpsignb(0, 1, 2))
                        .getMessage());
    }

    static EncodingTable<X86Assembler> ofX86(int bits) {
        EncodingTable<X86Assembler> table = new EncodingTable<>();
        boolean wide = bits == 512;
        String kind = wide ? "zmm" : "ymm";
        int count = wide ? 32 : 16;
        for (int i = 0; i < OFFSETS.length; i++) {
            int base = BASES[i % BASES.length];
            int offset = OFFSETS[i];
            int d = 5 * i % count;
            int n = (3 + 7 * i) % count;
            int m = (9 * i + 6) % count;
            int shift = i + 1;
            String at =
                    "["
                            + NAMES[base]
                            + (offset == 0 ? "" : offset < 0 ? "" + offset : "+" + offset)
                            + "]";
            String one = kind + d;
            String three = one + ", " + kind + n + ", " + kind + m;
            String two = one + ", " + kind + n;
            String half = wide ? "YMMWORD PTR " : "XMMWORD PTR ";
            String quarter = wide ? "XMMWORD PTR " : "QWORD PTR ";
            table.add(
                    "vpbroadcastd " + one + ", DWORD PTR " + at,
                    a -> a.vpbroadcastd(d, base, offset));
            table.add("vcvtph2ps " + one + ", " + half + at, a -> a.vcvtph2ps(d, base, offset));
            table.add("vpmovzxbd " + one + ", " + quarter + at, a -> a.vpmovzxbd(d, base, offset));
            table.add("vmulps " + three, a -> a.vmulps(d, n, m));
            table.add("vcvtdq2ps " + two, a -> a.vcvtdq2ps(d, n));
            table.add((wide ? "vpandd " : "vpand ") + three, a -> a.vpand(d, n, m));
            table.add("vpsrld " + two + ", " + shift, a -> a.vpsrld(d, n, shift));
            table.add("vpaddd " + three, a -> a.vpaddd(d, n, m));
            table.add("vpaddw " + three, a -> a.vpaddw(d, n, m));
            table.add("vpsubb " + three, a -> a.vpsubb(d, n, m));
            String whole = wide ? "ZMMWORD PTR " : "YMMWORD PTR ";
            table.add("vcvtdq2ps " + one + ", " + whole + at, a -> a.vcvtdq2ps(d, base, offset));
            table.add("vpabsb " + two, a -> a.vpabsb(d, n));
            table.add("vpmaddubsw " + three, a -> a.vpmaddubsw(d, n, m));
            table.add("vpmaddwd " + three, a -> a.vpmaddwd(d, n, m));
            if (wide) {
                int mask = 1 + i % 7;
                int tile = i % 8;
                int left = (i + 3) % 8;
                int right = (i + 5) % 8;
                if (i < 8) {
                    table.add(
                            "tdpbssd tmm%d, tmm%d, tmm%d".formatted(tile, left, right),
                            a -> a.tdpbssd(tile, left, right));
                }
                table.add("vpmovb2m k" + mask + ", zmm" + n, a -> a.vpmovb2m(mask, n));
                table.add(
                        "vpsubb zmm%d{k%d}, zmm%d, zmm%d".formatted(d, mask, n, m),
                        a -> a.vpsubbMasked(d, mask, n, m));
                String element = two + ", DWORD PTR " + at + "{1to16}";
                table.add("vpdpbusd " + element, a -> a.vpdpbusdBroadcast(d, n, base, offset));
                table.add("vmulps " + element, a -> a.vmulpsBroadcast(d, n, base, offset));
            } else {
                table.add("vpsignb " + three, a -> a.vpsignb(d, n, m));
                table.add("{vex} vpdpbusd " + three, a -> a.vpdpbusd(d, n, m));
            }
        }
        return table;
    }

    @Test
    void aarch64() throws IOException {
        ofA64().check("a64-blocks.txt", A64Assembler::new);
    }

    static EncodingTable<A64Assembler> ofA64() {
        EncodingTable<A64Assembler> table = new EncodingTable<>();
        int[] registers = {0, 5, 15, 16, 26, 31};
        for (int i = 0; i < registers.length; i++) {
            int d = registers[i];
            int n = registers[(i + 1) % 6];
            int m = registers[(i + 2) % 6];
            int lane = i % 4;
            int value = 40 * i + 15;
            int shift = i + 1;
            String fours = "v" + d + ".4s, v" + n + ".4s, v" + m + ".4s";
            String bytes = "v" + d + ".16b, v" + n + ".16b";
            table.add(
                    "sdot v%d.4s, v%d.16b, v%d.4b[%d]".formatted(d, n, m, lane),
                    a -> a.sdot(d, n, m, lane));
            table.add("add " + fours, a -> a.addWhole(d, n, m));
            table.add("dup v%d.4s, v%d.s[%d]".formatted(d, n, lane), a -> a.dup(d, n, lane));
            table.add("movi v%d.16b, #%d".formatted(d, value), a -> a.moviBytes(d, value));
            table.add("and " + bytes + ", v" + m + ".16b", a -> a.and(d, n, m));
            table.add("mov " + bytes, a -> a.movV(d, n));
            table.add("ushr " + bytes + ", #" + shift, a -> a.ushrBytes(d, n, shift));
            table.add("uxtl v%d.8h, v%d.8b".formatted(d, n), a -> a.uxtlBytes(d, n));
            table.add("uxtl v%d.4s, v%d.4h".formatted(d, n), a -> a.uxtl16(d, n));
            table.add("scvtf v%d.4s, v%d.4s".formatted(d, n), a -> a.scvtf(d, n));
            table.add("fmul " + fours, a -> a.fmul(d, n, m));
            table.add(
                    "fmul v%d.4s, v%d.4s, v%d.s[%d]".formatted(d, n, m, lane),
                    a -> a.fmul(d, n, m, lane));
            table.add("fmla " + fours, a -> a.fmla(d, n, m));
        }
        for (int whole : new int[] {0, 8, 4095, 65535}) {
            table.add("mov x9, #" + whole, a -> a.movImm(9, whole));
        }
        return table;
    }
}
