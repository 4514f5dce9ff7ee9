package dev.weft.model;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.Shards;
import java.util.ArrayList;
import java.util.List;

/**
 * The memory of all ranks, a cell per element: two slots of every shard, and two of what lands at
 * every rank. A cell holds a tag that says which element of which call lies there, or that it is
 * being written.
 */
final class Memory {

    static final int SLOTS = 2;

    private static final int TORN = -1;
    private static final int EMPTY = -2;

    private final Shards shards;
    private final int cols;
    private final boolean pingPong;
    private final boolean sums;

    /** By slot and rank. */
    private final List<List<List<History>>> owned = new ArrayList<>();

    private final List<List<List<History>>> landed = new ArrayList<>();

    Memory(Setting setting) {
        Chunks chunks = setting.chunks();
        this.shards = chunks.shards();
        this.cols = Math.toIntExact(chunks.cols());
        this.pingPong = setting.keeps(Storage.PING_PONG);
        this.sums = setting.sums();
        long landing = 0;
        if (!setting.keeps(Storage.IN_PLACE)) {
            landing = pingPong ? shards.maxRows() : shards.totalRows();
        }
        for (int slot = 0; slot < SLOTS; slot++) {
            owned.add(new ArrayList<>());
            landed.add(new ArrayList<>());
            for (int r = 0; r < setting.ranks(); r++) {
                String of = " of rank " + r + ", slot " + slot;
                owned.get(slot).add(cells("shard" + of, shards.rows(r)));
                landed.get(slot).add(cells("landing" + of, landing));
            }
        }
    }

    private List<History> cells(String name, long rows) {
        List<History> cells = new ArrayList<>();
        for (int i = 0; i < rows * cols; i++) {
            cells.add(new History(name + ", row " + i / cols, EMPTY));
        }
        return cells;
    }

    /** What a place holds before anybody has written it. */
    static int empty() {
        return EMPTY;
    }

    /** What a place holds while it is written. */
    static int torn() {
        return TORN;
    }

    /** A rectangle of a shard where its owner put it. */
    Part shard(int source, int slot, int call, Rows rows) {
        return part(owned.get(slot).get(source), 0, source, call, rows);
    }

    /** The same where it landed at {@code rank}. */
    Part landing(int rank, int slot, int source, int call, Rows rows) {
        long first = pingPong ? 0 : shards.firstRow(source);
        return part(landed.get(slot).get(rank), first, source, call, rows);
    }

    private Part part(List<History> from, long landingRow, int source, int call, Rows rows) {
        List<History> cells = new ArrayList<>();
        List<Integer> tags = new ArrayList<>();
        for (long row = rows.first(); row < rows.first() + rows.count(); row++) {
            for (long col = rows.firstCol(); col < rows.firstCol() + rows.cols(); col++) {
                long cell = (landingRow + row) * cols + col;
                long element = (shards.firstRow(source) + row) * cols + col;
                cells.add(from.get(Math.toIntExact(cell)));
                tags.add(Math.toIntExact(call * shards.totalRows() * cols + element));
            }
        }
        return new Part(cells, tags);
    }

    /** A tag in words. */
    String describe(int tag) {
        if (tag < 0) {
            return tag == TORN ? "a row half written" : "nothing yet";
        }
        long elements = shards.totalRows() * cols;
        return "row "
                + tag % elements / cols
                + (sums ? " of C" : " of A")
                + " in call "
                + tag / elements;
    }

    /** Rows of one shard, or some of their columns. */
    record Rows(long first, long count, long firstCol, long cols) {}
}
