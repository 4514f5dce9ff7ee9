package dev.weft.plan.step;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a buffer holds, rectangle by rectangle, and which steps wrote and read it last. Rectangles
 * are cut where parts begin and end. Used by one thread.
 */
final class BufferState {

    /** The writer of what was there before the call. */
    static final int BEFORE_ALL = -1;

    /** Columns of a strip of rows. */
    static final class Cell {
        private final long firstCol;
        private long cols;
        private Content content;
        private int writer;

        /** Those that have read it since it was written: few, so a list will do. */
        private final List<Integer> readers;

        private Cell(long firstCol, long cols, Content content, int writer, List<Integer> readers) {
            this.firstCol = firstCol;
            this.cols = cols;
            this.content = content;
            this.writer = writer;
            this.readers = new ArrayList<>(readers);
        }

        long firstCol() {
            return firstCol;
        }

        long cols() {
            return cols;
        }

        /** Null if nothing was written. */
        Content content() {
            return content;
        }

        int writer() {
            return writer;
        }

        void read(int step) {
            if (!readers.contains(step)) {
                readers.add(step);
            }
        }

        void write(int step, Content newContent) {
            content = newContent;
            writer = step;
            readers.clear();
        }

        /** The steps that must be done before {@code step} overwrites it. */
        List<Integer> usersExcept(int step) {
            List<Integer> users = new ArrayList<>(readers);
            if (users.isEmpty() && writer != BEFORE_ALL) {
                users.add(writer);
            }
            users.remove((Integer) step);
            return users;
        }

        private Cell splitAt(long col) {
            Cell right = new Cell(col, firstCol + cols - col, content, writer, readers);
            cols = col - firstCol;
            return right;
        }

        private Cell copy() {
            return new Cell(firstCol, cols, content, writer, readers);
        }
    }

    /** What is done with each cell of a part. */
    interface Visitor {
        void visit(long firstRow, long rows, Cell cell);
    }

    /** By first row: the cells of a strip of rows, from the first column on. */
    private final TreeMap<Long, List<Cell>> strips = new TreeMap<>();

    private final long totalRows;

    BufferState(Buffer buffer, Content content) {
        this.totalRows = buffer.rows();
        if (buffer.rows() > 0 && buffer.cols() > 0) {
            List<Cell> all = new ArrayList<>();
            all.add(new Cell(0, buffer.cols(), content, BEFORE_ALL, List.of()));
            strips.put(0L, all);
        }
    }

    /** Visits the cells of a part, strip by strip; none reaches beyond it. */
    void forEach(Part part, Visitor visitor) {
        if (part.isEmpty()) {
            return;
        }
        long endRow = part.firstRow() + part.rows();
        cutRows(part.firstRow());
        cutRows(endRow);
        for (Map.Entry<Long, List<Cell>> strip :
                strips.subMap(part.firstRow(), endRow).entrySet()) {
            long first = strip.getKey();
            Long next = strips.higherKey(first);
            long rows = (next == null ? totalRows : next) - first;
            cutCols(strip.getValue(), part.firstCol());
            cutCols(strip.getValue(), part.firstCol() + part.cols());
            for (Cell cell : strip.getValue()) {
                if (cell.firstCol >= part.firstCol()
                        && cell.firstCol < part.firstCol() + part.cols()) {
                    visitor.visit(first, rows, cell);
                }
            }
        }
    }

    private void cutRows(long row) {
        if (row > 0 && row < totalRows && !strips.containsKey(row)) {
            List<Cell> above = strips.floorEntry(row).getValue();
            strips.put(row, new ArrayList<>(above.stream().map(Cell::copy).toList()));
        }
    }

    private static void cutCols(List<Cell> cells, long col) {
        for (int i = 0; i < cells.size(); i++) {
            Cell cell = cells.get(i);
            if (col > cell.firstCol && col < cell.firstCol + cell.cols) {
                cells.add(i + 1, cell.splitAt(col));
                return;
            }
        }
    }
}
