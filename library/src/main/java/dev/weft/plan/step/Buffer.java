package dev.weft.plan.step;

/**
 * Memory of one rank that steps read and write.
 *
 * @param name for people to read; nothing depends on it
 * @param open whether other ranks read it or write to it
 * @param single whether one copy serves all calls: other ranks write to it only once its rank has
 *     started the call. Otherwise calls use two copies in turn
 */
public record Buffer(String name, Kind kind, boolean open, boolean single, long rows, long cols) {

    /** What a buffer holds. */
    public enum Kind {
        /** The part of A that the caller passes. */
        A,
        /** The part of B that the caller passes; all Bs side by side if there are several. */
        B,
        /**
         * The rows of C that the rank gets. What is written here is finished: the epilogue is
         * applied and the element is rounded to the type of C.
         */
        C,
        /** Rows of A that have come from elsewhere. */
        ROWS,
        /** Sums in fp32. */
        SUMS,
        /** Sums that are rounded to bf16 as they are stored. */
        ROUNDED_SUMS
    }

    public Buffer {
        if (rows < 0 || cols < 0) {
            throw new IllegalArgumentException(
                    "buffer %s of %d rows x %d columns: expected none or more"
                            .formatted(name, rows, cols));
        }
    }

    /** A buffer that calls use in two copies. */
    public Buffer(String name, Kind kind, boolean open, long rows, long cols) {
        this(name, kind, open, false, rows, cols);
    }

    /**
     * Whether the caller passes it: no step may write to it, so it does not matter who reads it.
     */
    public boolean isGiven() {
        return kind == Kind.A || kind == Kind.B;
    }

    /** Whether it holds sums that can be continued or added. */
    public boolean holdsSums() {
        return kind == Kind.SUMS || kind == Kind.ROUNDED_SUMS;
    }

    /** The same buffer with this many rows. */
    Buffer with(boolean nowOpen, long newRows) {
        return new Buffer(name, kind, nowOpen, single, newRows, cols);
    }

    /** Whether it holds what {@code other} does, in the same shape. */
    boolean isLike(Buffer other) {
        return kind == other.kind && rows == other.rows && cols == other.cols;
    }

    /** Whether it holds elements of A. */
    public boolean holdsRows() {
        return kind == Kind.A || kind == Kind.ROWS;
    }
}
