package dev.weft.gemm.code;

/**
 * Writes the instructions of aarch64 that kernels use. Registers are numbers: general ones x0 to
 * x30, of 64 bits, with 31 for the stack pointer or zero, depending on the instruction, and vector
 * registers v0 to v31, as four floats unless a method says otherwise. Offsets are bytes. For one
 * thread.
 */
final class A64Assembler extends Assembler {

    /** The stack pointer, in addresses and sums. */
    public static final int SP = 31;

    /** The register that is always zero, if a result is not wanted. */
    public static final int ZERO = 31;

    /** When a branch is taken; the number is the condition's in the instruction. */
    public enum Condition {
        NE(1),
        GE(10),
        GT(12);

        private final int code;

        Condition(int code) {
            this.code = code;
        }
    }

    /** Which cache a line is fetched into; the number is the operation's in the instruction. */
    public enum Prefetch {
        PLDL1KEEP(0),
        PSTL1KEEP(16);

        private final int code;

        Prefetch(int code) {
            this.code = code;
        }
    }

    private static final int UNCONDITIONAL = 0x14000000;

    // Multiply-adds.

    /** d += n x m[index], all four lanes, each rounded once. */
    public void fmla(int d, int n, int m, int index) {
        put32(0x4F801000 | element(m, index) | two(n, d));
    }

    /** d = four times +0. */
    public void zero(int d) {
        put32(0x6F00E400 | reg(d));
    }

    /** d = n0 m0 n1 m1, floats. */
    public void zip1(int d, int n, int m) {
        put32(0x4E803800 | reg(m) << 16 | two(n, d));
    }

    /** d = n2 m2 n3 m3, floats. */
    public void zip2(int d, int n, int m) {
        put32(0x4E807800 | reg(m) << 16 | two(n, d));
    }

    /** d = the four fp16 in the low half of n, as floats. */
    public void fcvtl(int d, int n) {
        put32(0x0E217800 | two(n, d));
    }

    /** d = the four 16-bit values in the low half of n, each in the upper half of its lane. */
    public void shll16(int d, int n) {
        put32(0x2E613800 | two(n, d));
    }

    // Doubles: two in a vector.

    /** d = the two floats in the low half of n, as doubles. */
    public void widenFloats(int d, int n) {
        put32(0x0E617800 | two(n, d));
    }

    /** The low half of d = the two doubles of n as floats; clears the upper half. */
    public void narrowDoubles(int d, int n) {
        put32(0x0E616800 | two(n, d));
    }

    public void fabsDoubles(int d, int n) {
        put32(0x4EE0F800 | two(n, d));
    }

    /** d = the smaller of n and m, lane by lane; NaN if one is. */
    public void fminDoubles(int d, int n, int m) {
        put32(0x4EE0F400 | reg(m) << 16 | two(n, d));
    }

    /** d = the larger of n and m, lane by lane, where +0 is larger than -0; NaN if one is. */
    public void fmaxDoubles(int d, int n, int m) {
        put32(0x4E60F400 | reg(m) << 16 | two(n, d));
    }

    public void faddDoubles(int d, int n, int m) {
        put32(0x4E60D400 | reg(m) << 16 | two(n, d));
    }

    /** d = n - m. */
    public void fsubDoubles(int d, int n, int m) {
        put32(0x4EE0D400 | reg(m) << 16 | two(n, d));
    }

    public void fmulDoubles(int d, int n, int m) {
        put32(0x6E60DC00 | reg(m) << 16 | two(n, d));
    }

    /** d = n / m. */
    public void fdivDoubles(int d, int n, int m) {
        put32(0x6E60FC00 | reg(m) << 16 | two(n, d));
    }

    /** d += n x m, lane by lane, each rounded once. */
    public void fmlaDoubles(int d, int n, int m) {
        put32(0x4E60CC00 | reg(m) << 16 | two(n, d));
    }

    /** d = n + m, lanes of 64 bits. */
    public void addLongs(int d, int n, int m) {
        put32(0x4EE08400 | reg(m) << 16 | two(n, d));
    }

    /** d = n with each lane of 64 bits shifted to the left. */
    public void shlLongs(int d, int n, int shift) {
        put32(0x4F405400 | inRange("shift", shift, 0, 63) << 16 | two(n, d));
    }

    // Whole numbers in vectors.

    /** d += for each lane the four signed bytes of n x those of m[index]. */
    public void sdot(int d, int n, int m, int index) {
        put32(0x4F80E000 | element(m, index) | two(n, d));
    }

    /** d = n + m, lanes of 32 bits. */
    public void addWhole(int d, int n, int m) {
        put32(0x4EA08400 | reg(m) << 16 | two(n, d));
    }

    /** d = n[index] in every lane, 32 bits. */
    public void dup(int d, int n, int index) {
        put32(0x4E000400 | (inRange("lane", index, 0, 3) << 3 | 4) << 16 | two(n, d));
    }

    /** d = the byte {@code value} in every lane of 8 bits. */
    public void moviBytes(int d, int value) {
        int bits = inRange("value", value, 0, 255);
        put32(0x4F00E400 | bits >> 5 << 16 | (bits & 31) << 5 | reg(d));
    }

    public void and(int d, int n, int m) {
        put32(0x4E201C00 | reg(m) << 16 | two(n, d));
    }

    /** d = n, all 128 bits. */
    public void movV(int d, int n) {
        put32(0x4EA01C00 | reg(n) << 16 | two(n, d));
    }

    /** d = n with each byte shifted to the right. */
    public void ushrBytes(int d, int n, int shift) {
        put32(0x6F000400 | 16 - inRange("shift", shift, 1, 8) << 16 | two(n, d));
    }

    /** d = the eight unsigned bytes in the low half of n, as 16 bits. */
    public void uxtlBytes(int d, int n) {
        put32(0x2F08A400 | two(n, d));
    }

    /** d = the four unsigned 16-bit numbers in the low half of n, as 32 bits. */
    public void uxtl16(int d, int n) {
        put32(0x2F10A400 | two(n, d));
    }

    /** d = the whole numbers of n, signed, as floats. */
    public void scvtf(int d, int n) {
        put32(0x4E21D800 | two(n, d));
    }

    public void fmul(int d, int n, int m) {
        put32(0x6E20DC00 | reg(m) << 16 | two(n, d));
    }

    /** d = n x m[index], all four lanes. */
    public void fmul(int d, int n, int m, int index) {
        put32(0x4F809000 | element(m, index) | two(n, d));
    }

    /** d += n x m, lane by lane, each rounded once. */
    public void fmla(int d, int n, int m) {
        put32(0x4E20CC00 | reg(m) << 16 | two(n, d));
    }

    private static int element(int m, int index) {
        int at = inRange("lane", index, 0, 3);
        return (at & 1) << 21 | reg(m) << 16 | at >> 1 << 11;
    }

    // Loads and stores of vectors.

    /** Loads 128 bits; offset 0 to 65520 in steps of 16. */
    public void ldrQ(int t, int base, int offset) {
        put32(0x3DC00000 | unsigned(offset, 16) | two(base, t));
    }

    public void strQ(int t, int base, int offset) {
        put32(0x3D800000 | unsigned(offset, 16) | two(base, t));
    }

    /** Loads 128 bits and then adds {@code step}, -256 to 255, to the base. */
    public void ldrQPost(int t, int base, int step) {
        put32(0x3CC00400 | post(step) | two(base, t));
    }

    /**
     * Loads 64 bits into the low half and clears the upper one; offset 0 to 32760 in steps of 8.
     */
    public void ldrD(int t, int base, int offset) {
        put32(0xFD400000 | unsigned(offset, 8) | two(base, t));
    }

    /** Stores the low half; offset 0 to 32760 in steps of 8. */
    public void strD(int t, int base, int offset) {
        put32(0xFD000000 | unsigned(offset, 8) | two(base, t));
    }

    public void strS(int t, int base, int offset) {
        put32(0xBD000000 | unsigned(offset, 4) | two(base, t));
    }

    /** Loads 64 bits into the low half, clears the upper one, and adds {@code step} to the base. */
    public void ldrDPost(int t, int base, int step) {
        put32(0xFC400400 | post(step) | two(base, t));
    }

    /** Loads 32 bits into the lowest lane, clears the rest, and adds {@code step} to the base. */
    public void ldrSPost(int t, int base, int step) {
        put32(0xBC400400 | post(step) | two(base, t));
    }

    /** Loads 16 bits into the lowest lane, clears the rest, and adds {@code step} to the base. */
    public void ldrHPost(int t, int base, int step) {
        put32(0x7C400400 | post(step) | two(base, t));
    }

    public void stpQPost(int t, int u, int base, int step) {
        pair(0xAC800000, t, u, base, step, 16);
    }

    // Pairs for the stack; a function keeps d8 to d15 and x19 to x30 for its caller.

    public void ldpD(int t, int u, int base, int offset) {
        pair(0x6D400000, t, u, base, offset, 8);
    }

    public void stpD(int t, int u, int base, int offset) {
        pair(0x6D000000, t, u, base, offset, 8);
    }

    // General registers.

    public void ldrX(int t, int base, int offset) {
        put32(0xF9400000 | unsigned(offset, 8) | two(base, t));
    }

    public void strX(int t, int base, int offset) {
        put32(0xF9000000 | unsigned(offset, 8) | two(base, t));
    }

    /** d = n + value, 0 to 4095 or a multiple of 4096 up to 4095 x 4096; 31 is the stack. */
    public void addImm(int d, int n, int value) {
        put32(0x91000000 | immediate(value) | two(n, d));
    }

    public void subImm(int d, int n, int value) {
        put32(0xD1000000 | immediate(value) | two(n, d));
    }

    /** Like {@link #subImm}, and sets the flags; d may be 31 for a mere comparison. */
    public void subsImm(int d, int n, int value) {
        put32(0xF1000000 | immediate(value) | two(n, d));
    }

    /** d = n + (m << shift); here 31 is zero. */
    public void add(int d, int n, int m, int shift) {
        put32(0x8B000000 | shifted(m, shift) | two(n, d));
    }

    public void sub(int d, int n, int m, int shift) {
        put32(0xCB000000 | shifted(m, shift) | two(n, d));
    }

    /** d = value, 0 to 65535. */
    public void movImm(int d, int value) {
        put32(0xD2800000 | inRange("value", value, 0, 65535) << 5 | reg(d));
    }

    public void mov(int d, int n) {
        put32(0xAA0003E0 | reg(n) << 16 | reg(d));
    }

    /** d = n if the condition holds, else m. */
    public void csel(int d, int n, int m, Condition condition) {
        put32(0x9A800000 | reg(m) << 16 | condition.code << 12 | two(n, d));
    }

    /** d = n >>> shift. */
    public void lsr(int d, int n, int shift) {
        put32(0xD340FC00 | inRange("shift", shift, 0, 63) << 16 | two(n, d));
    }

    /** Fetches the line at an offset, 0 to 32760 in steps of 8, ahead of its use. */
    public void prfm(Prefetch operation, int base, int offset) {
        put32(0xF9800000 | unsigned(offset, 8) | two(base, operation.code));
    }

    // Branches.

    public void b(Label to) {
        branchTo(to);
        put32(UNCONDITIONAL);
    }

    public void b(Condition condition, Label to) {
        branchTo(to);
        put32(0x54000000 | condition.code);
    }

    public void cbz(int t, Label to) {
        branchTo(to);
        put32(0xB4000000 | reg(t));
    }

    public void ret() {
        put32(0xD65F03C0);
    }

    @Override
    public void nop() {
        put32(0xD503201F);
    }

    @Override
    void patch(int branch, int target) {
        int instruction = read32(branch);
        int words = (target - branch) / Integer.BYTES;
        if ((instruction & 0xFC000000) == UNCONDITIONAL) {
            write32(branch, instruction & 0xFC000000 | distance(words, 26));
        } else {
            write32(branch, instruction & ~(0x7FFFF << 5) | distance(words, 19) << 5);
        }
    }

    private static int distance(int words, int bits) {
        int half = 1 << bits - 1;
        return inRange("branch of so many instructions:", words, -half, half - 1) & (1 << bits) - 1;
    }

    private void pair(int opcode, int t, int u, int base, int offset, int scale) {
        int seven = scaled("offset", offset, scale, -64, 63) & 0x7F;
        put32(opcode | seven << 15 | reg(u) << 10 | two(base, t));
    }

    private static int unsigned(int offset, int scale) {
        return scaled("offset", offset, scale, 0, 4095) << 10;
    }

    private static int post(int step) {
        return (inRange("step", step, -256, 255) & 0x1FF) << 12;
    }

    private static int immediate(int value) {
        return value <= 4095
                ? inRange("value", value, 0, 4095) << 10
                : scaled("value", value, 4096, 0, 4095) << 10 | 1 << 22;
    }

    private static int shifted(int m, int shift) {
        return reg(m) << 16 | inRange("shift", shift, 0, 63) << 10;
    }

    /** The usual places of two registers. */
    private static int two(int n, int d) {
        return reg(n) << 5 | reg(d);
    }

    private static int reg(int number) {
        return inRange("register", number, 0, 31);
    }
}
