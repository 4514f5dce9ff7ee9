package dev.weft.model;

import java.util.List;

/**
 * Some cells of memory and what a call expects in them.
 *
 * @param tags by cell
 */
record Part(List<History> cells, List<Integer> tags) {

    static final Part NONE = new Part(List.of(), List.of());

    Part {
        cells = List.copyOf(cells);
        tags = List.copyOf(tags);
    }

    boolean isEmpty() {
        return cells.isEmpty();
    }
}
