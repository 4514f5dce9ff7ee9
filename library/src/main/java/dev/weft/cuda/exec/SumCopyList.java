package dev.weft.cuda.exec;

import dev.weft.cuda.kernel.Origin;
import dev.weft.cuda.kernel.TileSchedule.SumBlock;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * A rank's plan of sums as blocks of a product and copies on two streams, one for what comes and
 * one for what goes. A flag tells of each copy that has come, and a counter of each block of which
 * something goes: it counts tiles that are stored. Pure.
 *
 * @param blocks by product, in the order in which they are multiplied
 * @param in copies to this rank: first those that the product starts from, in its order, then those
 *     that are added, then whole sums
 * @param out copies from this rank, in the order in which they can start
 * @param late copies of rows that this rank has added up
 * @param origins by flag: whose rows it tells of
 * @param counters how many there are
 * @param results which slots the rows of the result are the sum of
 */
public record SumCopyList(
        List<List<SumBlock>> blocks,
        List<Move> in,
        List<Move> out,
        List<Move> late,
        List<Origin> origins,
        int counters,
        List<Parts> results) {

    /**
     * What a copy should have at least. With copies both ways at once, an H200 moved 46 GB/s each
     * way in pieces of 2 MiB, 49.5 in pieces of 8 MiB and 50.5 in larger ones.
     */
    private static final long MOVE_BYTES = 8L << 20;

    /** Likewise at both ends, where a product waits for the first and a call for the last. */
    private static final long END_MOVE_BYTES = 2L << 20;

    /** Blocks at the end of a call: more than are multiplied when the last sums come. */
    private static final int END_BLOCKS = 4;

    /**
     * A copy of some columns of a chunk.
     *
     * @param product its number
     * @param tag the chunk's number
     * @param slot where it goes, at this rank or a peer: see {@link Transfer#slot}
     * @param fromSlot where it lies
     * @param row first row in C
     * @param word of a copy to this rank, the flag that it raises; of another one, what it waits
     *     for: a counter if it lies among the sums that are multiplied, else a flag; -1 for none
     * @param after copies to this rank that must be queued before
     */
    public record Move(
            int product,
            int tag,
            int slot,
            int fromSlot,
            long row,
            long rows,
            long col,
            long cols,
            int word,
            int after) {}

    /**
     * Rows of a result that are made together.
     *
     * @param slots that they are the sum of, in the order in which these are added
     * @param flags by product: of the copy after which all of them have come; -1 if none comes
     */
    public record Parts(long row, long rows, List<Integer> slots, List<Integer> flags) {}

    public SumCopyList {
        blocks = blocks.stream().map(List::copyOf).toList();
        in = List.copyOf(in);
        out = List.copyOf(out);
        late = List.copyOf(late);
        origins = List.copyOf(origins);
        results = List.copyOf(results);
    }

    /**
     * @param columns of each product
     * @param all whether this rank gets all rows
     * @param staged whether threads of the host send what this rank copies to host memory: then it
     *     copies each chunk once, to the slot of partial sums, and nothing that is handed on
     * @param rounded whether products are rounded before they are added: then they are not whole
     *     sums as they are, even if nothing is added
     */
    public static SumCopyList of(
            RankPlan plan,
            List<Long> columns,
            boolean all,
            TileShape shape,
            boolean staged,
            boolean rounded) {
        return new Writer(plan, columns, shape, staged, rounded).write(all);
    }

    /**
     * How many of the copies to this rank bring what the first {@code count} products start from.
     */
    public int inOfProducts(int count) {
        return (int)
                in.stream()
                        .filter(move -> move.slot() == Reduction.PARTIAL && move.product() < count)
                        .count();
    }

    /** How many of the copies to this rank come before those of whole sums. */
    public int inBeforeWhole() {
        return (int) in.stream().filter(move -> move.slot() != Reduction.WHOLE).count();
    }

    /** Rows of C that a slot needs room for: the first of them, and how many. */
    public long[] rowsOf(int slot) {
        List<long[]> touched = new ArrayList<>();
        in.stream()
                .filter(move -> move.slot() == slot)
                .forEach(move -> touched.add(new long[] {move.row(), move.rows()}));
        Stream.concat(out.stream(), late.stream())
                .filter(move -> move.fromSlot() == slot)
                .forEach(move -> touched.add(new long[] {move.row(), move.rows()}));
        if (slot == Reduction.PARTIAL) {
            blocks.getFirst().forEach(b -> touched.add(new long[] {b.row(), b.rows()}));
        }
        long first = touched.stream().mapToLong(t -> t[0]).min().orElse(0);
        long end = touched.stream().mapToLong(t -> t[0] + t[1]).max().orElse(0);
        return new long[] {first, end - first};
    }

    private static final class Writer {

        private final RankPlan plan;
        private final Chunks chunks;
        private final List<Long> columns;
        private final TileShape shape;
        private final boolean staged;
        private final boolean rounded;

        /** By tag: the slots in which it arrives, in order. */
        private final Map<Integer, List<Integer>> arriving = new HashMap<>();

        /** By tag: what this rank sends of it. */
        private final Map<Integer, List<Transfer>> leaving = new HashMap<>();

        private final Set<Integer> multiplied = new HashSet<>();

        /** By product and tag: the flag of its last copy to a slot that is added. */
        private final List<Map<Integer, Integer>> lastFlags = new ArrayList<>();

        private final List<Move> in = new ArrayList<>();
        private final List<Move> out = new ArrayList<>();
        private final List<Move> late = new ArrayList<>();
        private final List<Origin> origins = new ArrayList<>();
        private int counters;

        Writer(
                RankPlan plan,
                List<Long> columns,
                TileShape shape,
                boolean staged,
                boolean rounded) {
            this.plan = plan;
            this.staged = staged;
            this.rounded = rounded;
            this.chunks = plan.chunks();
            this.columns = columns;
            this.shape = shape;
            columns.forEach(n -> lastFlags.add(new HashMap<>()));
            plan.arrivals().stream()
                    .flatMap(lane -> lane.transfers().stream())
                    .forEach(
                            t ->
                                    arriving.computeIfAbsent(t.tag(), x -> new ArrayList<>())
                                            .add(t.slot()));
            plan.lanes().stream()
                    .flatMap(lane -> lane.transfers().stream())
                    .forEach(t -> leaving.computeIfAbsent(t.tag(), x -> new ArrayList<>()).add(t));
            for (RowBlock block : plan.consumption()) {
                multiplied.add(chunks.tag(block.source(), block.firstChunk()));
            }
        }

        SumCopyList write(boolean all) {
            List<List<SumBlock>> blocks = new ArrayList<>();
            for (int i = 0; i < columns.size(); i++) {
                blocks.add(new ArrayList<>());
                List<RowBlock> order = plan.consumption();
                for (int at = 0; at < order.size(); at++) {
                    boolean first = i == 0 && at == 0;
                    boolean last = i == columns.size() - 1 && at >= order.size() - END_BLOCKS;
                    addBlock(i, order.get(at), first || last, blocks.getLast());
                }
            }
            addOthers(false);
            addOthers(true);
            List<List<SumBlock>> narrowed = blocks.stream().map(this::narrowed).toList();
            return new SumCopyList(narrowed, in, out, late, origins, counters, results(all));
        }

        private boolean arrives(int tag, int slot) {
            return arriving.getOrDefault(tag, List.of()).contains(slot);
        }

        /** Whether the rank adds up parts of the chunk, be it only its own. */
        private boolean adds(int tag) {
            boolean others =
                    arriving.getOrDefault(tag, List.of()).stream()
                            .anyMatch(slot -> slot >= Reduction.slotOf(0));
            boolean own =
                    rounded
                            && leaving.getOrDefault(tag, List.of()).stream()
                                    .anyMatch(t -> t.slot() == Reduction.WHOLE)
                            && !arrives(tag, Reduction.WHOLE);
            return others || own;
        }

        /** Columns of a slice: whole tiles, and enough bytes for a copy. */
        private long sliceCols(long rows, boolean atAnEnd) {
            long bytes = atAnEnd ? END_MOVE_BYTES : MOVE_BYTES;
            long cols = Math.ceilDiv(bytes, Math.max(1, rows) * Float.BYTES);
            return Math.ceilDiv(cols, shape.width()) * shape.width();
        }

        private interface Slices {
            void add(long col, long cols);
        }

        private void slice(int product, Chunk chunk, boolean atAnEnd, Slices to) {
            long each = sliceCols(chunk.rows(), atAnEnd);
            for (long col = 0; col < columns.get(product); col += each) {
                to.add(col, Math.min(each, columns.get(product) - col));
            }
        }

        private long row(Chunk chunk) {
            return chunks.shards().firstRow(chunk.source()) + chunk.firstRow();
        }

        private void addBlock(int product, RowBlock block, boolean atAnEnd, List<SumBlock> blocks) {
            Chunk chunk = chunks.chunk(block.source(), block.firstChunk());
            int tag = chunks.tag(block.source(), block.firstChunk());
            List<Transfer> sends =
                    leaving.getOrDefault(tag, List.of()).stream()
                            .filter(t -> t.slot() != Reduction.WHOLE || isMultipliedWhole(tag))
                            .toList();
            slice(
                    product,
                    chunk,
                    atAnEnd,
                    (col, cols) -> {
                        int flag = -1;
                        if (arrives(tag, Reduction.PARTIAL)) {
                            flag = bring(product, Reduction.PARTIAL, chunk, col, cols);
                        }
                        int counter = sends.isEmpty() ? -1 : counters++;
                        for (int slot : slots(sends)) {
                            out.add(
                                    new Move(
                                            product,
                                            tag,
                                            slot,
                                            Reduction.PARTIAL,
                                            row(chunk),
                                            chunk.rows(),
                                            col,
                                            cols,
                                            counter,
                                            in.size()));
                        }
                        blocks.add(
                                new SumBlock(
                                        row(chunk), chunk.rows(), col, cols, flag, counter, false));
                    });
        }

        /** Where copies go: one for each transfer, or one for all. */
        private List<Integer> slots(List<Transfer> sends) {
            return staged
                    ? sends.stream().limit(1).map(send -> Reduction.PARTIAL).toList()
                    : sends.stream().map(Transfer::slot).toList();
        }

        /** Whether this rank's product completes the sums. */
        private boolean isMultipliedWhole(int tag) {
            return multiplied.contains(tag) && !arrives(tag, Reduction.WHOLE) && !adds(tag);
        }

        private int bring(int product, int slot, Chunk chunk, long col, long cols) {
            int flag = origins.size();
            origins.add(new Origin(chunk.source(), chunk.index()));
            in.add(
                    new Move(
                            product,
                            chunks.tag(chunk.source(), chunk.index()),
                            slot,
                            slot,
                            row(chunk),
                            chunk.rows(),
                            col,
                            cols,
                            flag,
                            in.size()));
            return flag;
        }

        /** What no product waits for, what is handed on, and what is sent once it is added up. */
        private void addOthers(boolean whole) {
            for (int owner = 0; owner < plan.ranks(); owner++) {
                for (int number = 0; number < chunks.count(owner); number++) {
                    Chunk chunk = chunks.chunk(owner, number);
                    int tag = chunks.tag(owner, number);
                    if (whole ? arrives(tag, Reduction.WHOLE) : adds(tag)) {
                        for (int product = 0; product < columns.size(); product++) {
                            addOthers(product, chunk, tag, whole);
                        }
                    }
                }
            }
        }

        private void addOthers(int product, Chunk chunk, int tag, boolean whole) {
            List<Integer> to =
                    slots(
                            leaving.getOrDefault(tag, List.of()).stream()
                                    .filter(t -> t.slot() == Reduction.WHOLE)
                                    .toList());
            slice(
                    product,
                    chunk,
                    false,
                    (col, cols) -> {
                        int flag = -1;
                        for (int slot : arriving.getOrDefault(tag, List.of())) {
                            if (slot != Reduction.PARTIAL) {
                                flag = bring(product, slot, chunk, col, cols);
                            }
                        }
                        lastFlags.get(product).put(tag, flag);
                        // Threads of the host hand on what has come to them.
                        for (int slot : whole && staged ? List.<Integer>of() : to) {
                            (whole ? out : late)
                                    .add(
                                            new Move(
                                                    product,
                                                    tag,
                                                    slot,
                                                    Reduction.WHOLE,
                                                    row(chunk),
                                                    chunk.rows(),
                                                    col,
                                                    cols,
                                                    whole ? flag : -1,
                                                    in.size()));
                        }
                    });
        }

        /**
         * The last round's tiles are narrow, so that they end soon after the last sums have come.
         */
        private List<SumBlock> narrowed(List<SumBlock> blocks) {
            List<SumBlock> all = new ArrayList<>(blocks);
            long left = shape.workers();
            for (int i = all.size() - 1; i >= 0 && left > 0; i--) {
                SumBlock b = all.get(i);
                long across = Math.ceilDiv(b.cols(), shape.narrowWidth());
                left -= across * Math.ceilDiv(b.rows(), shape.rows());
                all.set(
                        i,
                        new SumBlock(
                                b.row(), b.rows(), b.col(), b.cols(), b.flag(), b.signal(), true));
            }
            return all;
        }

        /** Rows that wait for nothing but the product are one; others are made as they come. */
        private List<Parts> results(boolean all) {
            List<Parts> results = new ArrayList<>();
            for (int owner = 0; owner < plan.ranks(); owner++) {
                for (int c = 0; (all || owner == plan.rank()) && c < chunks.count(owner); c++) {
                    Chunk chunk = chunks.chunk(owner, c);
                    int tag = chunks.tag(owner, c);
                    List<Integer> flags =
                            lastFlags.stream().map(last -> last.getOrDefault(tag, -1)).toList();
                    Parts one = new Parts(row(chunk), chunk.rows(), slots(tag), flags);
                    Parts before = results.isEmpty() ? null : results.getLast();
                    if (before != null && before.flags().equals(flags) && flags.contains(-1)) {
                        long rows = before.rows() + one.rows();
                        results.set(
                                results.size() - 1,
                                new Parts(before.row(), rows, one.slots(), flags));
                    } else {
                        results.add(one);
                    }
                }
            }
            return results;
        }

        private List<Integer> slots(int tag) {
            if (arrives(tag, Reduction.WHOLE)) {
                return List.of(Reduction.WHOLE);
            }
            List<Integer> slots = new ArrayList<>();
            for (int r = 0; r < plan.ranks(); r++) {
                if (r == plan.rank() && multiplied.contains(tag)) {
                    slots.add(Reduction.PARTIAL);
                } else if (arrives(tag, Reduction.slotOf(r))) {
                    slots.add(Reduction.slotOf(r));
                }
            }
            return slots;
        }
    }
}
