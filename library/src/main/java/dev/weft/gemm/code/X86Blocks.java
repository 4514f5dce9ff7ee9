package dev.weft.gemm.code;

import static dev.weft.gemm.code.X86Assembler.R10;
import static dev.weft.gemm.code.X86Assembler.R11;
import static dev.weft.gemm.code.X86Assembler.R8;
import static dev.weft.gemm.code.X86Assembler.R9;
import static dev.weft.gemm.code.X86Assembler.RAX;
import static dev.weft.gemm.code.X86Assembler.RBP;
import static dev.weft.gemm.code.X86Assembler.RBX;
import static dev.weft.gemm.code.X86Assembler.RCX;
import static dev.weft.gemm.code.X86Assembler.RDI;
import static dev.weft.gemm.code.X86Assembler.RDX;
import static dev.weft.gemm.code.X86Assembler.RSI;
import static dev.weft.gemm.code.X86Assembler.RSP;

import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.Assembler.Label;
import dev.weft.gemm.code.X86Assembler.Condition;
import java.util.List;

/**
 * Writes {@link BlockKernel}s for x86_64: panels of one vector of columns and up to 12 rows with
 * AVX-512 or 4 with AVX2. VNNI's instruction multiplies unsigned with signed bytes. Without it,
 * magnitudes are multiplied with numbers that have taken their signs, so that no sum of two
 * products leaves 16 bits. Eight sums of products with 4 bits stay within 16 bits too.
 */
class X86Blocks {

    /** The features that the code for 512 bits needs, in Linux's names. */
    static final List<String> VNNI = List.of("avx512_vnni", "avx512f");

    /** The same without VNNI. */
    static final List<String> BYTES_512 = List.of("avx512bw", "avx512f");

    /** What AVX2's code needs to multiply bytes in one instruction, too. */
    static final List<String> VNNI_256 = List.of("avx_vnni");

    static final int LINE_BYTES = 64;
    private static final long STEPS_OF_PANEL = BlockPanels.DEPTH / BlockPanels.STEP;

    /**
     * Panels are fetched so far ahead. Measured with AVX-512BW and K = 4096 on a thread that reads
     * 9 GB/s: 2048 and 4096 take the same time. With up to 12 rows, fetching is up to 1.25 times as
     * fast as not; following the scales into the next panel saves 1 to 5%.
     */
    private static final int AHEAD_BYTES = 2048;

    static final int GROUPS = BlockPanels.GROUPS;
    private static final int GROUP_BYTES = BlockPanels.GROUP;
    private static final int R12 = 12;
    private static final int R13 = 13;
    private static final int R14 = 14;
    private static final int R15 = 15;

    static final int A = RDI;
    static final int B = RSI;
    private static final int SUMS = RDX;
    private static final int PITCH = RCX;
    private static final int ARGUMENTS = RCX;
    static final int FIRST_A = RAX;
    static final int STEPS = R8;
    static final int SCALES = R9;
    static final int STEPS_LEFT = R10;
    private static final int PANELS = R11;
    private static final int RESUME = RBX;
    private static final int ROW = RBP;
    private static final int SCALES_FROM = R12;
    static final int STEPS_OF_SCALES = R13;
    private static final int AHEAD = R14;

    /** The mask of negative numbers. */
    private static final int NEGATIVE = 1;

    final X86Assembler code;
    final boolean wide;

    /** Whether one instruction multiplies bytes and adds the products to whole sums. */
    private final boolean dots;

    private final int vectorBytes;

    // Vector registers after the rows' whole and fp32 sums.
    final int numbers;
    final int part;
    final int product;
    final int mask;
    final int ones;
    final int scale;
    final int offset;
    private final int zero;

    int rows;
    BlockPanels panels;

    X86Blocks(X86Assembler code, boolean dots) {
        this.code = code;
        this.dots = dots;
        vectorBytes = code.vectorBytes();
        wide = vectorBytes == LINE_BYTES;
        numbers = 2 * mostRows();
        part = numbers + 1;
        product = numbers + 2;
        mask = numbers + 3;
        scale = numbers + 4;
        offset = numbers + 5;
        ones = numbers + 6;
        zero = numbers + 7;
    }

    private int mostRows() {
        return wide ? 12 : 4;
    }

    static BlockCode.Written avx512() {
        return write("avx512", new X86Assembler(512), true);
    }

    static BlockCode.Written avx512bw() {
        return write("avx512bw", new X86Assembler(512), false);
    }

    /** Needs FMA and F16C, too. */
    static BlockCode.Written avx2() {
        return write("avx2", new X86Assembler(256), false);
    }

    /**
     * @param code without anything yet, for vectors of 256 bits
     */
    static BlockCode.Written avxVnni(X86Assembler code) {
        return write("avxvnni", code, true);
    }

    private static BlockCode.Written write(String name, X86Assembler code, boolean dots) {
        X86Blocks blocks = new X86Blocks(code, dots);
        int rows = blocks.mostRows();
        int cols = blocks.vectorBytes / Float.BYTES;
        return BlockCode.Written.of(name, rows, Integer.MAX_VALUE, cols, dots, code, blocks::sum);
    }

    final int sum(BlockPanels layout, int rowCount) {
        rows = rowCount;
        panels = layout;
        code.align(LINE_BYTES);
        Label data = code.label();
        writeData();
        final int start = code.position();
        final int[] kept = {RBX, RBP, R12, R13, R14, R15};
        for (int register : kept) {
            code.push(register);
        }
        loadArguments();
        enter(data);
        Label panel = code.label();
        code.mov(SCALES, B);
        code.add(SCALES, SCALES_FROM);
        loadOrClear();
        code.mov(STEPS_LEFT, STEPS);
        steps();
        code.mov(ROW, SUMS);
        for (int row = 0; row < rows; row++) {
            code.vmovupsStore(ROW, 0, sumOf(row));
            code.add(ROW, PITCH);
        }
        code.addImm(SUMS, vectorBytes);
        // The next panel begins at a line.
        code.mov(B, SCALES);
        code.addImm(B, LINE_BYTES - 1);
        code.andImm(B, -LINE_BYTES);
        code.dec(PANELS);
        code.j(Condition.NE, panel);
        leave();
        for (int i = kept.length - 1; i >= 0; i--) {
            code.pop(kept[i]);
        }
        code.vzeroupper();
        code.ret();
        return start;
    }

    /** Writes what {@link #enter} wants in front of the function. */
    void writeData() {}

    /**
     * Once per call, with all arguments in their registers.
     *
     * @param data in front of the function
     */
    void enter(Label data) {
        code.mov(FIRST_A, A);
    }

    void leave() {}

    /** Where the fp32 sums of a row are. */
    int sumOf(int row) {
        return rows + row;
    }

    /** All steps of a panel, from its start to its end. */
    void steps() {
        code.mov(A, FIRST_A);
        code.mov(AHEAD, B);
        code.addImm(AHEAD, AHEAD_BYTES);
        if (panels.hasOffsets()) {
            Label again = code.label();
            loadScales();
            code.movImm(STEPS_OF_SCALES, BlockPanels.STEPS_OF_K);
            Label step = code.label();
            step();
            code.dec(STEPS_OF_SCALES);
            code.j(Condition.NE, step);
            code.subImm(STEPS_LEFT, BlockPanels.STEPS_OF_K);
            code.j(Condition.NE, again);
        } else {
            Label step = code.label();
            step();
            code.dec(STEPS_LEFT);
            code.j(Condition.NE, step);
        }
    }

    /** Of the next 256 k. */
    final void loadScales() {
        code.vcvtph2ps(scale, SCALES, 0);
        code.vcvtph2ps(offset, SCALES, panels.scaleBytes());
        code.addImm(SCALES, 2 * panels.scaleBytes());
    }

    private void loadArguments() {
        code.movLoad(RAX, ARGUMENTS, Name.A_FROM.offset());
        code.add(A, RAX);
        code.movLoad(RAX, ARGUMENTS, Name.B_FROM.offset());
        code.add(B, RAX);
        code.movLoad(RAX, ARGUMENTS, Name.C_FROM.offset());
        code.add(SUMS, RAX);
        code.movLoad(STEPS, ARGUMENTS, Name.DEPTH.offset());
        code.movLoad(RESUME, ARGUMENTS, Name.RESUME.offset());
        code.movLoad(SCALES_FROM, ARGUMENTS, Name.COUNT.offset());
        code.movLoad(PANELS, ARGUMENTS, Name.PANELS.offset());
        code.movLoad(PITCH, ARGUMENTS, Name.PITCH.offset());
        constant(mask, 0x0F0F0F0F);
        if (!dots) {
            constant(ones, 0x00010001);
        }
        if (wide && !dots) {
            code.zero(zero);
        }
    }

    final void constant(int register, int lane) {
        code.movImm(R10, lane);
        code.push(R10);
        code.vpbroadcastd(register, RSP, 0);
        code.pop(R10);
    }

    private void loadOrClear() {
        Label done = new Label();
        for (int row = 0; row < rows; row++) {
            code.zero(sumOf(row));
        }
        code.test(RESUME, RESUME);
        code.j(Condition.E, done);
        code.mov(ROW, SUMS);
        for (int row = 0; row < rows; row++) {
            code.vmovups(sumOf(row), ROW, 0);
            code.add(ROW, PITCH);
        }
        code.place(done);
    }

    /** 32 k of all rows, and on to the next. */
    private void step() {
        // A panel's scales are fetched together with its numbers.
        int ahead = (int) Math.ceilDiv(panels.panelBytes(BlockPanels.DEPTH), STEPS_OF_PANEL);
        for (int at = 0; at < ahead; at += LINE_BYTES) {
            code.prefetcht0(AHEAD, at);
        }
        code.addImm(AHEAD, ahead);
        boolean startsFromMemory = dots && panels.bias() != 0;
        for (int row = 0; row < rows; row++) {
            if (startsFromMemory) {
                code.vpbroadcastd(row, A, startOf(row));
            } else {
                code.zero(row);
            }
        }
        if (panels.isHalved()) {
            for (int group = 0; group < GROUPS / 2; group++) {
                code.vmovups(numbers, B, group * vectorBytes);
                code.vpand(part, numbers, mask);
                multiply(group, part);
                code.vpsrld(numbers, numbers, 4);
                code.vpand(part, numbers, mask);
                multiply(group + GROUPS / 2, part);
            }
        } else {
            for (int group = 0; group < GROUPS; group++) {
                code.vmovups(numbers, B, group * vectorBytes);
                multiply(group, numbers);
            }
        }
        if (!dots && panels.isHalved()) {
            for (int row = 0; row < rows; row++) {
                code.vpmaddwd(row, row, ones);
                if (panels.bias() != 0) {
                    code.vpbroadcastd(product, A, startOf(row));
                    code.vpaddd(row, row, product);
                }
            }
        }
        loadStepScales(0);
        for (int row = 0; row < rows; row++) {
            code.vcvtdq2ps(row, row);
            add(row, row, 0);
        }
        code.addImm(A, BlockPanels.rowStepBytes(rows));
        code.addImm(B, panels.stepBytes());
        code.addImm(SCALES, panels.scaleBytes());
    }

    /** Adds the products of all rows with a vector of numbers: 4 k of each column. */
    private void multiply(int group, int of) {
        if (!dots && !panels.isHalved()) {
            code.vpabsb(part, of);
            if (wide) {
                code.vpmovb2m(NEGATIVE, of);
            }
        }
        for (int row = 0; row < rows; row++) {
            int at = (group * rows + row) * GROUP_BYTES;
            if (wide && dots) {
                code.vpdpbusdBroadcast(row, of, A, at);
                continue;
            }
            code.vpbroadcastd(product, A, at);
            if (dots) {
                code.vpdpbusd(row, of, product);
            } else if (panels.isHalved()) {
                code.vpmaddubsw(product, of, product);
                code.vpaddw(row, row, product);
            } else {
                if (wide) {
                    code.vpsubbMasked(product, NEGATIVE, zero, product);
                } else {
                    code.vpsignb(product, product, of);
                }
                code.vpmaddubsw(product, part, product);
                code.vpmaddwd(product, product, ones);
                code.vpaddd(row, row, product);
            }
        }
    }

    /** Loads the scales of a step, {@code at} bytes from where the next ones are. */
    final void loadStepScales(int at) {
        if (!panels.hasOffsets()) {
            code.vcvtph2ps(numbers, SCALES, at);
            return;
        }
        code.vpmovzxbd(numbers, SCALES, at);
        code.vcvtdq2ps(numbers, numbers);
        code.vmulps(numbers, numbers, scale);
        code.vpmovzxbd(part, SCALES, at + panels.cols());
        code.vcvtdq2ps(part, part);
        code.vmulps(part, part, offset);
    }

    /**
     * Adds the scaled whole sums of a row to its sums in fp32.
     *
     * @param whole as floats; not kept
     * @param aFrom where the step begins in A
     */
    final void add(int row, int whole, int aFrom) {
        int value = whole;
        int start = aFrom + startOf(row);
        if (panels.hasOffsets()) {
            multiplyByElement(product, part, start);
            code.vfmadd231ps(product, whole, numbers);
            value = product;
        } else {
            code.vmulps(whole, whole, numbers);
        }
        int ofA = start + rows * Integer.BYTES;
        if (wide) {
            code.vfmadd231psBroadcast(sumOf(row), value, A, ofA);
        } else {
            int free = value == whole ? product : whole;
            code.vbroadcastss(free, A, ofA);
            code.vfmadd231ps(sumOf(row), value, free);
        }
    }

    private void multiplyByElement(int d, int n, int at) {
        if (wide) {
            code.vmulpsBroadcast(d, n, A, at);
        } else {
            code.vbroadcastss(d, A, at);
            code.vmulps(d, d, n);
        }
    }

    /** Where a row's start is in a step of A. */
    private int startOf(int row) {
        return rows * BlockPanels.STEP + row * Integer.BYTES;
    }
}
