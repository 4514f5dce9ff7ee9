package dev.weft.model;

import java.util.List;

/**
 * Some cells of memory and what is expected in them.
 *
 * @param tags by cell
 */
record Cells(List<History> cells, List<Integer> tags) {

    static final Cells NONE = new Cells(List.of(), List.of());

    Cells {
        cells = List.copyOf(cells);
        tags = List.copyOf(tags);
    }

    boolean isEmpty() {
        return cells.isEmpty();
    }

    static Cells joined(List<Cells> all) {
        return new Cells(
                all.stream().flatMap(each -> each.cells().stream()).toList(),
                all.stream().flatMap(each -> each.tags().stream()).toList());
    }
}
