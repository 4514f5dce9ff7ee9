package dev.weft.plan.step;

/**
 * A rectangle of a rank's buffer.
 *
 * @param buffer index in {@link StepPlan#buffers} of {@code rank}
 */
public record Part(int rank, int buffer, long firstRow, long rows, long firstCol, long cols) {

    /** Some of its rows; {@code first} is relative to this part. */
    public Part rows(long first, long count) {
        return new Part(rank, buffer, firstRow + first, count, firstCol, cols);
    }

    /** Some of its columns; {@code first} is relative to this part. */
    public Part cols(long first, long count) {
        return new Part(rank, buffer, firstRow, rows, firstCol + first, count);
    }

    /** As many rows further down. */
    Part moved(long rowCount) {
        return new Part(rank, buffer, firstRow + rowCount, rows, firstCol, cols);
    }

    boolean isEmpty() {
        return rows == 0 || cols == 0;
    }

    boolean hasShapeOf(Part other) {
        return rows == other.rows && cols == other.cols;
    }
}
