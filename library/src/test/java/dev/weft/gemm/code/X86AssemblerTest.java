package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.gemm.code.X86Assembler.Condition;
import java.io.IOException;
import java.util.Locale;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Each instruction of {@link X86Assembler} against the GNU assembler's bytes. */
class X86AssemblerTest {

    private static final String[] NAMES = {
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15"
    };

    /** With the bases that have forms of their own: rsp, rbp, r12 and r13. */
    private static final int[] BASES = {7, 4, 5, 12, 13, 8};

    /** Of which a byte holds some as they are, some in units, and some not. */
    private static final int[] OFFSETS = {0, 4, -64, 508, 512, 8128, -8192, 100, 132};

    private final EncodingTable<X86Assembler> table = new EncodingTable<>();

    @Test
    void everyInstructionOnVectorsOf256BitsIsWhatTheGnuAssemblerWrites() throws IOException {
        vectors("ymm", "YMMWORD PTR ", 15);
        add("vxorps ymm3, ymm3, ymm3", a -> a.zero(3));
        add("vxorps ymm12, ymm12, ymm12", a -> a.zero(12));
        add("vzeroupper", X86Assembler::vzeroupper);
        four();
        general();
        table.check("avx2.txt", () -> new X86Assembler(256));
    }

    @Test
    void everyInstructionOnVectorsOf512BitsIsWhatTheGnuAssemblerWrites() throws IOException {
        vectors("zmm", "ZMMWORD PTR ", 31);
        for (int d : new int[] {0, 11, 20, 31}) {
            add("vpxord zmm%d, zmm%d, zmm%d", a -> a.zero(d), d, d, d);
        }
        for (int i = 0; i < OFFSETS.length; i++) {
            int base = BASES[i % BASES.length];
            int offset = OFFSETS[i];
            int d = 4 * i % 32;
            int n = (7 * i + 3) % 32;
            add(
                    "vfmadd231ps zmm%d, zmm%d, DWORD PTR %s{1to16}",
                    a -> a.vfmadd231psBroadcast(d, n, base, offset), d, n, at(base, offset));
        }
        masks();
        tiles();
        table.check("avx512.txt", () -> new X86Assembler(512));
    }

    private void masks() {
        for (int i = 0; i < OFFSETS.length; i++) {
            int base = BASES[i % BASES.length];
            int offset = OFFSETS[i];
            int d = 11 * i % 32;
            int mask = 1 + i % 7;
            add(
                    "vmovdqu16 zmm%d{k%d}{z}, ZMMWORD PTR %s",
                    a -> a.loadMasked16(d, mask, base, offset), d, mask, at(base, offset));
        }
        add("kmovd k1, esi", a -> a.kmov32(1, X86Assembler.RSI));
        add("kmovd k6, r10d", a -> a.kmov32(6, X86Assembler.R10));
        add("bzhi esi, esi, eax", a -> a.bzhi32(6, 6, 0));
        add("bzhi r9d, edx, r11d", a -> a.bzhi32(9, 2, 11));
        add("bzhi ecx, r8d, edi", a -> a.bzhi32(1, 8, 7));
    }

    private void tiles() {
        add("ldtilecfg [rip]", X86AssemblerTest::loadConfigBehind);
        add("tilerelease", X86Assembler::tilerelease);
        for (int i = 0; i < 8; i++) {
            int d = i;
            int n = (i + 3) % 8;
            int m = (i + 5) % 8;
            add("tilezero tmm%d", a -> a.tilezero(d), d);
            add("tdpbf16ps tmm%d, tmm%d, tmm%d", a -> a.tdpbf16ps(d, n, m), d, n, m);
            int base = BASES[i % BASES.length];
            int pitch = new int[] {1, 9, 5, 3, 12, 13, 15, 0}[i];
            int offset = OFFSETS[i];
            String memory = at(base, offset).replaceFirst("(\\w+)", "$1+" + NAMES[pitch] + "*1");
            add("tileloadd tmm%d, %s", a -> a.tileloadd(d, base, pitch, offset), d, memory);
            add("tilestored %s, tmm%d", a -> a.tilestored(base, pitch, offset, d), memory, d);
        }
    }

    private static void loadConfigBehind(X86Assembler code) {
        Assembler.Label config = new Assembler.Label();
        code.ldtilecfg(config);
        code.place(config);
    }

    private void vectors(String name, String size, int last) {
        for (int i = 0; i < OFFSETS.length; i++) {
            int base = BASES[i % BASES.length];
            int offset = OFFSETS[i];
            String memory = at(base, offset);
            int d = 5 * i % (last + 1);
            int n = (last - 3 * i) & last;
            int m = (9 * i + 6) % (last + 1);
            String one = name + d;
            String two = name + n;
            String three = one + ", " + two + ", " + name + m;
            table.add("vunpcklps " + three, a -> a.vunpcklps(d, n, m));
            table.add("vunpckhps " + three, a -> a.vunpckhps(d, n, m));
            table.add("vunpcklpd " + three, a -> a.vunpcklpd(d, n, m));
            table.add("vunpckhpd " + three, a -> a.vunpckhpd(d, n, m));
            int choice = 27 * i;
            if (last == 31) {
                table.add(
                        "vshuff32x4 " + three + ", " + choice, a -> a.vshuff32x4(d, n, m, choice));
            } else {
                table.add(
                        "vperm2f128 " + three + ", " + choice, a -> a.vperm2f128(d, n, m, choice));
            }
            add("vmovups %s, %s%s", a -> a.vmovups(d, base, offset), one, size, memory);
            add("vmovups %s%s, %s", a -> a.vmovupsStore(base, offset, d), size, memory, one);
            add("vbroadcastss %s, DWORD PTR %s", a -> a.vbroadcastss(n, base, offset), two, memory);
            add("vfmadd231ps %s, %s, %s", a -> a.vfmadd231ps(d, n, m), one, two, name + m);
            String half = last == 31 ? "YMMWORD PTR " : "XMMWORD PTR ";
            add("vcvtph2ps %s, %s%s", a -> a.vcvtph2ps(d, base, offset), one, half, memory);
            add("vpmovzxwd %s, %s%s", a -> a.vpmovzxwd(n, base, offset), two, half, memory);
            add("vpslld %s, %s, %d", a -> a.vpslld(d, n, offset & 31), one, two, offset & 31);
        }
    }

    private void four() {
        for (int i = 0; i < OFFSETS.length; i++) {
            int base = BASES[i % BASES.length];
            int offset = OFFSETS[i];
            String memory = at(base, offset);
            int d = 5 * i % 16;
            int n = (15 - 3 * i) & 15;
            int m = (9 * i + 6) % 16;
            add("vmovups xmm%d, XMMWORD PTR %s", a -> a.loadFour(d, base, offset), d, memory);
            add("vmovups XMMWORD PTR %s, xmm%d", a -> a.storeFour(base, offset, d), memory, d);
            add("vmovss xmm%d, DWORD PTR %s", a -> a.loadOne(d, base, offset), d, memory);
            add("vmovss DWORD PTR %s, xmm%d", a -> a.storeOne(base, offset, d), memory, d);
            add("vcvtph2ps xmm%d, QWORD PTR %s", a -> a.widenFp16(d, base, offset), d, memory);
            add("vpmovzxwd xmm%d, QWORD PTR %s", a -> a.widen16(d, base, offset), d, memory);
            add(
                    "vpinsrw xmm%d, xmm%d, WORD PTR %s, %d",
                    a -> a.insert16(d, n, base, offset, d % 8), d, n, memory, d % 8);
            add("vunpcklps xmm%d, xmm%d, xmm%d", a -> a.unpackLow(d, n, m), d, n, m);
            add("vunpckhps xmm%d, xmm%d, xmm%d", a -> a.unpackHigh(d, n, m), d, n, m);
            add("vcvtph2ps xmm%d, xmm%d", a -> a.widenFp16(d, n), d, n);
            add("vpslld xmm%d, xmm%d, %d", a -> a.shiftLeft(d, n, 2 * d), d, n, 2 * d);
        }
    }

    private void general() {
        for (int d = 1; d < 16; d++) {
            generalRegister(d, (5 * d + 2) % 16, 100 * d - 700);
        }
        for (int i = 0; i < OFFSETS.length; i++) {
            int base = BASES[i % BASES.length];
            int offset = OFFSETS[i];
            String memory = at(base, offset);
            int d = 15 - i;
            String name = NAMES[d];
            add("mov %s, QWORD PTR %s", a -> a.movLoad(d, base, offset), name, memory);
            add("mov QWORD PTR %s, %s", a -> a.movStore(base, offset, d), memory, name);
            add("prefetcht0 BYTE PTR %s", a -> a.prefetcht0(base, offset), memory);
        }
        for (Condition condition : Condition.values()) {
            String name = condition.name().toLowerCase(Locale.ROOT);
            add("{disp32} j%s .", a -> a.j(condition, a.label()), name);
        }
        add("ret", X86Assembler::ret);
        add("nop", X86Assembler::nop);
    }

    private void generalRegister(int d, int s, int value) {
        String one = NAMES[d];
        String two = NAMES[s];
        add("mov %s, %s", a -> a.mov(d, s), one, two);
        add("add %s, %s", a -> a.add(d, s), one, two);
        add("sub %s, %s", a -> a.sub(d, s), one, two);
        add("test %s, %s", a -> a.test(d, s), one, two);
        add("add %s, %d", a -> a.addImm(d, value), one, value);
        add("sub %s, %d", a -> a.subImm(d, value), one, value);
        add("cmp %s, %d", a -> a.cmpImm(d, value), one, value);
        add("and %s, %d", a -> a.andImm(d, value), one, value);
        add("mov %s, %d", a -> a.movImm(d, value), one, value);
        add("shl %s, %d", a -> a.shl(d, 4 * d), one, 4 * d);
        add("dec %s", a -> a.dec(d), one);
        add("push %s", a -> a.push(d), one);
        add("pop %s", a -> a.pop(d), one);
    }

    private static String at(int base, int offset) {
        String sign = offset < 0 ? "" : "+";
        return "[" + NAMES[base] + (offset == 0 ? "" : sign + offset) + "]";
    }

    private void add(String text, Consumer<X86Assembler> call, Object... values) {
        table.add(text.formatted(values), call);
    }

    @Test
    void whatDoesNotFitTheInstructionIsRefused() {
        X86Assembler code = new X86Assembler(256);
        refused("vector register 16: expected 0 to 15", () -> code.vfmadd231ps(16, 0, 0));
        refused("register 16: expected 0 to 15", () -> code.vmovups(0, 16, 0));
        refused(
                "only vectors of 512 bits have an operand to broadcast",
                () -> code.vfmadd231psBroadcast(0, 0, 0, 0));
        refused("tile register 8: expected 0 to 7", () -> code.tdpbf16ps(0, 8, 0));
        refused("the stack pointer is no pitch", () -> code.tileloadd(0, 0, X86Assembler.RSP, 0));
        refused(
                "only vectors of 512 bits have masks",
                () -> code.loadMasked16(0, 1, X86Assembler.RAX, 0));
        refused(
                "mask 0 selects everything: expected 1 to 7",
                () -> new X86Assembler(512).loadMasked16(0, 0, X86Assembler.RAX, 0));
        refused("vectors of 128 bits: expected 256 or 512", () -> new X86Assembler(128));
    }

    private static void refused(String message, Runnable call) {
        var e = assertThrows(IllegalArgumentException.class, call::run);
        assertEquals(message, e.getMessage());
    }
}
