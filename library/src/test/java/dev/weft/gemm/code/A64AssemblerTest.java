package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.gemm.code.A64Assembler.Condition;
import dev.weft.gemm.code.A64Assembler.Prefetch;
import java.io.IOException;
import java.util.Locale;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Each instruction of {@link A64Assembler} against the GNU assembler's bytes. */
class A64AssemblerTest {

    private static final int[] REGISTERS = {0, 5, 15, 16, 26, 31};
    private static final int[] GENERAL = {0, 9, 15, 16, 30};

    private final EncodingTable<A64Assembler> table = new EncodingTable<>();

    @Test
    void everyInstructionIsWhatTheGnuAssemblerWrites() throws IOException {
        for (int i = 0; i < REGISTERS.length; i++) {
            vectors(REGISTERS[i], REGISTERS[(i + 1) % 6], REGISTERS[(i + 2) % 6], i % 4);
        }
        for (int i = 0; i < GENERAL.length; i++) {
            general(GENERAL[i], GENERAL[(i + 1) % 5], GENERAL[(i + 2) % 5], 7 * i);
        }
        for (int i = 0; i < GENERAL.length; i++) {
            memory(REGISTERS[i], GENERAL[(i + 2) % 5], new int[] {0, 1, 2, 63, 4095}[i]);
            pairs(REGISTERS[i], REGISTERS[i + 1], new int[] {0, 1, -1, 63, -64}[i]);
        }
        prefetches();
        branches();
        table.check("a64.txt", A64Assembler::new);
    }

    private void vectors(int d, int n, int m, int lane) {
        add("fmla v%d.4s, v%d.4s, v%d.s[%d]", a -> a.fmla(d, n, m, lane), d, n, m, lane);
        add("movi v%d.2d, #0", a -> a.zero(d), d);
        add("zip1 v%d.4s, v%d.4s, v%d.4s", a -> a.zip1(d, n, m), d, n, m);
        add("zip2 v%d.4s, v%d.4s, v%d.4s", a -> a.zip2(d, n, m), d, n, m);
        add("fcvtl v%d.4s, v%d.4h", a -> a.fcvtl(d, n), d, n);
        add("shll v%d.4s, v%d.4h, #16", a -> a.shll16(d, n), d, n);
    }

    private void general(int d, int n, int m, int shift) {
        add("add x%d, x%d, x%d, lsl #%d", a -> a.add(d, n, m, shift), d, n, m, shift);
        add("sub x%d, x%d, x%d, lsl #%d", a -> a.sub(d, n, m, shift), d, n, m, shift);
        add("mov x%d, x%d", a -> a.mov(d, n), d, n);
        add("lsr x%d, x%d, #%d", a -> a.lsr(d, n, 2 * shift + 1), d, n, 2 * shift + 1);
        int value = 146 * shift;
        add("add x%d, x%d, #%d", a -> a.addImm(d, n, value), d, n, value);
        add("sub x%d, x%d, #%d", a -> a.subImm(d, n, value), d, n, value);
        add("subs x%d, x%d, #%d", a -> a.subsImm(d, n, value), d, n, value);
        int large = 4096 * (value + 1) / 2 / 4096 * 4096 + 4096;
        add("add x%d, x%d, #%d", a -> a.addImm(d, n, large), d, n, large);
        if (d == 0) {
            add("add sp, x%d, #%d", a -> a.addImm(A64Assembler.SP, n, 16), n, 16);
            add("sub sp, sp, #64", a -> a.subImm(A64Assembler.SP, A64Assembler.SP, 64));
            add("cmp x3, #7", a -> a.subsImm(31, 3, 7));
            add("ret", A64Assembler::ret);
            add("nop", A64Assembler::nop);
        }
    }

    /** Offsets of so many units of what is loaded. */
    private void memory(int t, int base, int units) {
        add("ldr q%d, [x%d, #%d]", a -> a.ldrQ(t, base, 16 * units), t, base, 16 * units);
        add("ldr d%d, [x%d, #%d]", a -> a.ldrD(t, base, 8 * units), t, base, 8 * units);
        add("str q%d, [x%d, #%d]", a -> a.strQ(t, base, 16 * units), t, base, 16 * units);
        add("str s%d, [x%d, #%d]", a -> a.strS(t, base, 4 * units), t, base, 4 * units);
        int x = t % 31;
        add("ldr x%d, [x%d, #%d]", a -> a.ldrX(x, base, 8 * units), x, base, 8 * units);
        int step = units % 512 - 256;
        add("str x%d, [x%d, #%d]", a -> a.strX(x, base, 8 * units), x, base, 8 * units);
        add("ldr q%d, [x%d], #%d", a -> a.ldrQPost(t, base, step), t, base, step);
        add("ldr d%d, [x%d], #%d", a -> a.ldrDPost(t, base, step), t, base, step);
        add("ldr s%d, [x%d], #%d", a -> a.ldrSPost(t, base, step), t, base, step);
        add("ldr h%d, [x%d], #%d", a -> a.ldrHPost(t, base, step), t, base, step);
    }

    private void pairs(int t, int u, int units) {
        int sp = A64Assembler.SP;
        add("stp q%d, q%d, [x7], #%d", a -> a.stpQPost(t, u, 7, 16 * units), t, u, 16 * units);
        add("ldp d%d, d%d, [sp, #%d]", a -> a.ldpD(t, u, sp, 8 * units), t, u, 8 * units);
        add("stp d%d, d%d, [sp, #%d]", a -> a.stpD(t, u, sp, 8 * units), t, u, 8 * units);
    }

    private void prefetches() {
        for (Prefetch kind : Prefetch.values()) {
            String name = kind.name().toLowerCase(Locale.ROOT);
            add("prfm %s, [x9, #64]", a -> a.prfm(kind, 9, 64), name);
        }
        add("prfm pldl1keep, [x30, #32760]", a -> a.prfm(Prefetch.PLDL1KEEP, 30, 32760));
    }

    /** Branches to themselves; how far they reach is another test's. */
    private void branches() {
        add("b .", a -> a.b(a.label()));
        for (Condition condition : Condition.values()) {
            String name = condition.name().toLowerCase(Locale.ROOT);
            add("b.%s .", a -> a.b(condition, a.label()), name);
            add("csel x3, x17, x0, %s", a -> a.csel(3, 17, 0, condition), name);
        }
        add("cbz x17, .", a -> a.cbz(17, a.label()));
    }

    private void add(String text, Consumer<A64Assembler> call, Object... values) {
        table.add(text.formatted(values), call);
    }

    @Test
    void branchesReachLabelsOnBothSides() {
        A64Assembler code = new A64Assembler();
        Assembler.Label end = new Assembler.Label();
        Assembler.Label start = code.label();
        code.nop();
        code.b(end);
        code.b(Condition.NE, start);
        code.cbz(3, end);
        code.place(end);
        code.ret();
        // GNU as: start: nop; b end; b.ne start; cbz x3, end; end: ret
        int[] words = {0xd503201f, 0x14000003, 0x54ffffc1, 0xb4000023, 0xd65f03c0};
        byte[] found = code.code();
        assertEquals(words.length * 4, found.length);
        A64Assembler expected = new A64Assembler();
        for (int word : words) {
            expected.put32(word);
        }
        assertArrayEquals(expected.code(), found);
    }

    @Test
    void whatDoesNotFitTheInstructionIsRefused() {
        A64Assembler code = new A64Assembler();
        refused("offset 8: expected a multiple of 16", () -> code.ldrQ(0, 0, 8));
        refused("offset 65536: expected 0 to 65520", () -> code.ldrQ(0, 0, 65536));
        refused("offset -16: expected 0 to 65520", () -> code.strQ(0, 0, -16));
        refused("offset 1024: expected -1024 to 1008", () -> code.stpQPost(0, 1, 2, 1024));
        refused("register 32: expected 0 to 31", () -> code.zero(32));
        refused("lane 4: expected 0 to 3", () -> code.fmla(0, 0, 0, 4));
        refused("value 4097: expected a multiple of 4096", () -> code.addImm(0, 0, 4097));
        refused("value -1: expected 0 to 4095", () -> code.subImm(0, 0, -1));
        assertEquals(0, code.position());
    }

    private static void refused(String message, Runnable call) {
        var e = assertThrows(IllegalArgumentException.class, call::run);
        assertEquals(message, e.getMessage());
    }

    @Test
    void aBranchToALabelThatIsNowhereIsRefused() {
        A64Assembler code = new A64Assembler();
        code.nop();
        code.b(new Assembler.Label());
        var e = assertThrows(IllegalStateException.class, code::code);
        assertEquals("the branch at byte 4 goes to a label that is not placed", e.getMessage());
    }
}
