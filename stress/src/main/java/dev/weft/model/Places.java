package dev.weft.model;

import dev.weft.plan.step.Part;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The memory of all ranks, row by row. A cell has one writer, so a row that several threads write
 * in turn has a cell for each of them. Whoever uses the row looks at all of its cells, and so finds
 * out if a writer has not been there yet, or the next one has begun too early. What is expected in
 * a cell is what lies there if all steps are taken one after the other.
 */
final class Places {

    static final int TORN = -1;
    private static final int EMPTY = -2;

    /** A row of a buffer; calls use two copies in turn, or one. */
    private record Row(int rank, int buffer, int copy, long row) {}

    private final int rows;

    /** By thread. */
    private final Map<Row, TreeMap<Integer, History>> cells = new HashMap<>();

    /**
     * @param rows of the whole matrix
     */
    Places(long rows) {
        this.rows = Math.toIntExact(Math.max(1, rows));
    }

    /** A thread writes to these rows, in this copy, in some call. */
    void addWriter(Part part, int copy, int thread, String name) {
        for (long row = part.firstRow(); row < part.firstRow() + part.rows(); row++) {
            String place = "%s of rank %d, copy %d, row %d".formatted(name, part.rank(), copy, row);
            cells.computeIfAbsent(row(part, copy, row), r -> new TreeMap<>())
                    .computeIfAbsent(thread, t -> new History(place, EMPTY));
        }
    }

    private static Row row(Part part, int copy, long row) {
        return new Row(part.rank(), part.buffer(), copy, row);
    }

    /** What lies in rows now, by all writers but {@code except}. */
    Cells read(Part part, int copy, int except) {
        List<History> read = new ArrayList<>();
        List<Integer> tags = new ArrayList<>();
        for (long row = part.firstRow(); row < part.firstRow() + part.rows(); row++) {
            cells.getOrDefault(row(part, copy, row), new TreeMap<>())
                    .forEach(
                            (thread, cell) -> {
                                if (thread != except) {
                                    read.add(cell);
                                    tags.add(cell.last());
                                }
                            });
        }
        return new Cells(read, tags);
    }

    /** What a thread writes to rows, which are those from {@code firstRow} on of the whole. */
    Cells written(Part part, int copy, int thread, long firstRow, int call) {
        List<History> written = new ArrayList<>();
        List<Integer> tags = new ArrayList<>();
        for (long row = part.firstRow(); row < part.firstRow() + part.rows(); row++) {
            written.add(cells.get(row(part, copy, row)).get(thread));
            tags.add(Math.toIntExact(call * (long) rows + firstRow + row - part.firstRow()));
        }
        return new Cells(written, tags);
    }

    /** A tag in words. */
    String describe(int tag) {
        if (tag < 0) {
            return tag == TORN ? "a row half written" : "nothing yet";
        }
        return "row %d in call %d".formatted(tag % rows, tag / rows);
    }
}
