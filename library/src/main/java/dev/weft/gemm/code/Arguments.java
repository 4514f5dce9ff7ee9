package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * The arguments of {@link Tiles} calls besides memory: there are more than registers for them. Used
 * by one thread.
 */
public final class Arguments {

    /** Bytes of memory that they need. */
    public static final long BYTES = 16 * Long.BYTES;

    private final long[] values = new long[Name.values().length];
    private final MemorySegment memory;

    /**
     * What a function finds there, each a long. The first three are offsets in the memory that it
     * is called with. A pack has no B, and its C is the packed tile.
     */
    enum Name {
        A_FROM,
        B_FROM,
        C_FROM,
        DEPTH,
        /** The pitch of rows of C, or of A in a pack. */
        PITCH,
        RESUME,
        /** Tiles, or rows of A in a pack or in place. */
        COUNT,
        /** Panels of B that follow each other. */
        PANELS,
        /** The pitch of rows of A that are read in place. */
        A_PITCH,
        // Of an epilogue: the target in C, and operands from the first piece of memory on.
        TARGET,
        SOURCE,
        FACTORS,
        BIAS,
        RESIDUAL;

        int offset() {
            return ordinal() * Long.BYTES;
        }
    }

    /**
     * @param memory {@link #BYTES} of it, off the heap
     */
    public Arguments(MemorySegment memory) {
        this.memory = memory;
    }

    void set(Name name, long value) {
        values[name.ordinal()] = value;
    }

    /** The memory for functions. One copy: an access takes 1.5 us until Java has compiled it. */
    MemorySegment inMemory() {
        MemorySegment.copy(values, 0, memory, JAVA_LONG, 0, values.length);
        return memory;
    }
}
