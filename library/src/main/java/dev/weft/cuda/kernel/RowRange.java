package dev.weft.cuda.kernel;

import java.util.ArrayList;
import java.util.List;

/**
 * Rows of C that are multiplied together: they lie side by side in one source and wait for the same
 * pieces of A.
 *
 * @param source index of the matrix that holds the rows of A
 * @param sourceRow first row there
 * @param row first row in C
 * @param pieces what must have arrived, and from which column on; empty for rows that are there
 * @param narrow whether its tiles are narrow; no range after it has wide ones
 */
public record RowRange(
        int source, long sourceRow, long row, long rows, List<Piece> pieces, boolean narrow) {

    /**
     * @param firstRow relative to the source, like {@code rows}
     * @param firstCol first column of A that the piece brings
     * @param flag tells of its arrival
     */
    public record Piece(long firstRow, long rows, long firstCol, int flag) {

        public boolean touches(long row, long count) {
            return firstRow < row + count && firstRow + rows > row;
        }
    }

    public RowRange {
        pieces = List.copyOf(pieces);
    }

    /**
     * So many rows of gathered A as one range, whose only source it is. They may be of any shard,
     * so they wait for all of {@code ranges}.
     */
    public static RowRange whole(List<RowRange> ranges, long rows) {
        List<Piece> all = new ArrayList<>();
        for (RowRange range : ranges) {
            for (Piece piece : range.pieces) {
                all.add(new Piece(0, rows, piece.firstCol(), piece.flag()));
            }
        }
        boolean lastIsNarrow = !ranges.isEmpty() && ranges.getLast().narrow;
        return new RowRange(0, 0, 0, rows, all.stream().distinct().toList(), lastIsNarrow);
    }
}
