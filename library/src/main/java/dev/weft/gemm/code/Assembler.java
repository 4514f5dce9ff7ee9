package dev.weft.gemm.code;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Machine code that is being written, instruction after instruction, and the targets of its
 * branches. For one thread.
 */
abstract class Assembler {

    /** A target of branches, which may be placed before or after them. */
    public static final class Label {
        private int at = -1;
    }

    private record Branch(int at, Label to) {}

    private final List<Branch> branches = new ArrayList<>();
    private byte[] bytes = new byte[1024];
    private int length;

    Assembler() {}

    /** Bytes written so far: the position of the next instruction. */
    public final int position() {
        return length;
    }

    /** A label here. */
    public final Label label() {
        Label label = new Label();
        place(label);
        return label;
    }

    /** Places a label here. */
    public final void place(Label label) {
        if (label.at >= 0) {
            throw new IllegalStateException("the label is placed already, at byte " + label.at);
        }
        label.at = length;
    }

    /** Writes no-operations up to a multiple of {@code bytes}, a power of two. */
    public final void align(int bytes) {
        while ((length & bytes - 1) != 0) {
            nop();
        }
    }

    /** The shortest instruction that does nothing. */
    public abstract void nop();

    /** The code, with the distances of all branches filled in. */
    public final byte[] code() {
        for (Branch branch : branches) {
            if (branch.to.at < 0) {
                throw new IllegalStateException(
                        "the branch at byte " + branch.at + " goes to a label that is not placed");
            }
            patch(branch.at, branch.to.at);
        }
        return Arrays.copyOf(bytes, length);
    }

    /** Writes the distance of a branch into its instruction. */
    abstract void patch(int branch, int target);

    /** The next instruction branches to {@code label}. */
    final void branchTo(Label label) {
        branches.add(new Branch(length, label));
    }

    final void put(int oneByte) {
        if (length == bytes.length) {
            bytes = Arrays.copyOf(bytes, 2 * length);
        }
        bytes[length++] = (byte) oneByte;
    }

    /** Four bytes, the lowest first. */
    final void put32(int value) {
        for (int shift = 0; shift < Integer.SIZE; shift += Byte.SIZE) {
            put(value >> shift);
        }
    }

    final int read32(int at) {
        int value = 0;
        for (int i = 3; i >= 0; i--) {
            value = value << Byte.SIZE | bytes[at + i] & 0xFF;
        }
        return value;
    }

    final void write32(int at, int value) {
        for (int i = 0; i < Integer.BYTES; i++) {
            bytes[at + i] = (byte) (value >> i * Byte.SIZE);
        }
    }

    static int inRange(String what, long value, long min, long max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    what + " " + value + ": expected " + min + " to " + max);
        }
        return (int) value;
    }

    /** {@code value / scale}, which must be exact and in range. */
    static int scaled(String what, long value, int scale, long min, long max) {
        if (value % scale != 0) {
            throw new IllegalArgumentException(
                    what + " " + value + ": expected a multiple of " + scale);
        }
        inRange(what, value, min * scale, max * scale);
        return (int) (value / scale);
    }
}
