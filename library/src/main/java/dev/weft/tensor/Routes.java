package dev.weft.tensor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * For each row of A, the experts that it goes to, and the weight of each one's product in the sum.
 * A row may have fewer experts than it could: the rest are {@link #NONE}. They are checked by the
 * call that uses them. Used by one thread.
 */
public final class Routes {

    /** No expert. */
    public static final int NONE = -1;

    private static final long ENTRY_BYTES = 8;

    private final MemorySegment data;
    private final long rows;
    private final int perRow;

    private Routes(MemorySegment data, long rows, int perRow) {
        this.data = data;
        this.rows = rows;
        this.perRow = perRow;
    }

    /** Rows without experts, to be {@link #set}. */
    public Routes(long rows, int perRow) {
        this(Arena.ofAuto().allocate(Math.max(1, bytes(rows, perRow)), ENTRY_BYTES), rows, perRow);
        data.asSlice(0, bytes(rows, perRow)).fill((byte) NONE);
    }

    /**
     * A view of memory: {@code perRow} pairs for each row, a 32-bit number of an expert and an fp32
     * weight, in the machine's byte order.
     */
    public static Routes of(MemorySegment data, long rows, int perRow) {
        return new Routes(data.asSlice(0, bytes(rows, perRow)), rows, perRow);
    }

    /** By row: its experts, at most {@code perRow}, and their weights. */
    public static Routes of(int perRow, int[][] experts, float[][] weights) {
        Routes routes = new Routes(experts.length, perRow);
        for (int row = 0; row < experts.length; row++) {
            for (int i = 0; i < experts[row].length; i++) {
                routes.set(row, i, experts[row][i], weights[row][i]);
            }
        }
        return routes;
    }

    private static long bytes(long rows, int perRow) {
        return Math.multiplyExact(rows, perRow * ENTRY_BYTES);
    }

    /** The memory: see {@link #of(MemorySegment, long, int)}. */
    public MemorySegment data() {
        return data;
    }

    public long rows() {
        return rows;
    }

    /** How many experts a row may have. */
    public int perRow() {
        return perRow;
    }

    /** The number of an expert of a row, or {@link #NONE}. */
    public int expert(long row, int choice) {
        return data.get(ValueLayout.JAVA_INT_UNALIGNED, at(row, choice));
    }

    public float weight(long row, int choice) {
        return data.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at(row, choice) + Integer.BYTES);
    }

    /**
     * Sets one expert of a row.
     *
     * @param choice 0 or more; the order of a row's experts does not matter
     */
    public void set(long row, int choice, int expert, float weight) {
        data.set(ValueLayout.JAVA_INT_UNALIGNED, at(row, choice), expert);
        data.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at(row, choice) + Integer.BYTES, weight);
    }

    private long at(long row, int choice) {
        if (row < 0 || row >= rows || choice < 0 || choice >= perRow) {
            throw new IndexOutOfBoundsException(
                    "expert %d of row %d: expected %d for each of %d rows"
                            .formatted(choice, row, perRow, rows));
        }
        return (row * perRow + choice) * ENTRY_BYTES;
    }
}
