package dev.weft.cuda.kernel;

/**
 * How the rows of a product move if a call has fewer than it was prepared for, so that there are no
 * gaps between shards.
 *
 * @param targetFirst the row of C that is the first in the matrix which it writes; {@link #FIXED}
 *     if rows keep their places there
 * @param sourceMoves whether rows of A have the numbers of rows of C, and move like them
 */
public record RowPlaces(long targetFirst, boolean sourceMoves) {

    public static final long FIXED = -1;

    /** Only the rows of C move. */
    public static final RowPlaces OF_TARGET = new RowPlaces(0, false);

    /** All rows move alike. */
    public static final RowPlaces OF_BOTH = new RowPlaces(0, true);

    /** Where rows of C lie in a call. */
    @FunctionalInterface
    public interface Call {

        /** All rows, where they were prepared. */
        Call WHOLE = row -> row;

        /** Where a row, or the end of some, has moved to. */
        long at(long row);
    }

    public RowPlaces {
        if (targetFirst < 0 && !sourceMoves) {
            throw new IllegalArgumentException("no rows with the numbers of rows of C");
        }
    }

    /** The first of some rows, numbered as in C. */
    private long first(long sourceRow, long row) {
        return targetFirst < 0 ? sourceRow : targetFirst + row;
    }

    /** How many of these rows the call has. */
    long rows(Call call, long sourceRow, long row, long rows) {
        long first = first(sourceRow, row);
        return call.at(first + rows) - call.at(first);
    }

    /** The first row of the source in the call. */
    long sourceRow(Call call, long sourceRow, long row) {
        return sourceMoves ? call.at(first(sourceRow, row)) : sourceRow;
    }

    /** The first row that is written in the call. */
    long row(Call call, long row) {
        return targetFirst < 0 ? row : call.at(targetFirst + row) - call.at(targetFirst);
    }

    /** These rows in a call. */
    RowRange in(Call call, RowRange of) {
        return new RowRange(
                of.source(),
                sourceRow(call, of.sourceRow(), of.row()),
                row(call, of.row()),
                rows(call, of.sourceRow(), of.row(), of.rows()),
                of.pieces(),
                of.narrow());
    }
}
