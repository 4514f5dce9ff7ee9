package dev.weft.model;

import dev.weft.plan.Chunks;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The memory of all ranks of a product that is summed, a cell per chunk. A cell has one writer, so
 * a place that several write in turn has a cell for each of them: whoever uses the place reads them
 * all, and so finds out if the next one has begun to write too early.
 */
final class SumCells {

    /** What a cell holds. */
    enum Kind {
        /** A of a rank, which its caller writes. */
        INPUT,
        /** Sums to go on from, which a lane brings. */
        PARTIAL,
        /** The same place, once the rank has multiplied. */
        MULTIPLIED,
        /** The same place, once the owner has added all ranks' sums. */
        SUMMED,
        /** Whole sums, which a lane brings. */
        WHOLE,
        /** Sums of a rank alone, which its lane brings to the chunk's owner. */
        OWN
    }

    private final int chunks;

    /** By slot, kind, rank and tag; what is a rank's own by the rank that sends it. */
    private final List<List<List<List<History>>>> cells = new ArrayList<>();

    SumCells(Setting setting) {
        Chunks cut = setting.chunks();
        this.chunks = cut.total();
        for (int slot = 0; slot < Memory.SLOTS; slot++) {
            List<List<List<History>>> ofSlot = new ArrayList<>();
            for (Kind kind : Kind.values()) {
                List<List<History>> ofKind = new ArrayList<>();
                for (int rank = 0; rank < setting.ranks(); rank++) {
                    ofKind.add(
                            row(
                                    kind.name().toLowerCase(Locale.ROOT)
                                            + " of rank "
                                            + rank
                                            + ", slot "
                                            + slot));
                }
                ofSlot.add(ofKind);
            }
            cells.add(ofSlot);
        }
    }

    private List<History> row(String name) {
        List<History> row = new ArrayList<>();
        for (int tag = 0; tag < chunks; tag++) {
            row.add(new History(name + ", row " + tag, Memory.empty()));
        }
        return row;
    }

    /** One chunk of one rank in one call. */
    Part part(Kind kind, int rank, int tag, Call call) {
        History cell = cells.get(call.slot()).get(kind.ordinal()).get(rank).get(tag);
        return new Part(List.of(cell), List.of(call.index() * chunks + tag));
    }

    static Part together(List<Part> parts) {
        return new Part(
                parts.stream().flatMap(part -> part.cells().stream()).toList(),
                parts.stream().flatMap(part -> part.tags().stream()).toList());
    }
}
