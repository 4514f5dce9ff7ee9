package dev.weft.cuda.exec;

import dev.weft.cuda.kernel.Origin;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.op.Timeline;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Pacing.ArrivalCut;
import dev.weft.plan.Pacing.ArrivalCut.Block;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A rank's plan as copies on streams: what every lane copies, under which flag it is published, and
 * which flags the rows of the product wait for. A chunk's flag has the chunk's tag; the pieces of a
 * chunk that is cut have flags of their own behind them. Pure.
 *
 * @param lanes copies that this rank issues, by lane
 * @param ranges the rows in the order of consumption
 * @param origins by flag: whose rows it tells of
 */
public record CopyList(List<List<Copy>> lanes, List<RowRange> ranges, List<Origin> origins) {

    /**
     * One copy of a rectangle of one shard.
     *
     * @param from rank whose memory is read
     * @param to rank whose memory is written and whose flag is published
     * @param source rank that owns the rows
     * @param firstRow relative to the shard
     * @param flag at {@code to}
     * @param awaitedFlag this rank's flag that must be there first, or -1
     * @param fromSlot where the shard lies at {@code from}: see {@link Transfer#slot}
     * @param toSlot where it goes at {@code to}
     * @param credit what {@code to} must have released: see {@link Transfer#credit}
     */
    public record Copy(
            int from,
            int to,
            int source,
            long firstRow,
            long rows,
            long firstCol,
            long cols,
            int flag,
            int awaitedFlag,
            int fromSlot,
            int toSlot,
            int credit) {}

    public CopyList {
        origins = List.copyOf(origins);
        lanes = lanes.stream().map(List::copyOf).toList();
        ranges = List.copyOf(ranges);
    }

    /** Number of flags. */
    public int flags() {
        return origins.size();
    }

    /** Whether every row block is one chunk. */
    public static boolean takesChunksOneByOne(RankPlan plan) {
        return plan.consumption().stream()
                .allMatch(
                        block ->
                                block.chunkCount() == 1
                                        && plan.chunks()
                                                        .chunk(block.source(), block.firstChunk())
                                                        .rows()
                                                == block.rows());
    }

    /** By source: the slot in which its shard arrives; 0 if nothing does. */
    public static int[] slots(RankPlan plan) {
        int[] slots = new int[plan.ranks()];
        for (Lane lane : plan.arrivals()) {
            lane.transfers().forEach(transfer -> slots[transfer.source()] = transfer.slot());
        }
        return slots;
    }

    public static CopyList of(RankPlan plan) {
        return new Writer(plan).write();
    }

    /**
     * What arrives at this rank, in lines that each arrive in order: its own lanes, and for each
     * lane of a peer that pushes what comes from there.
     */
    public List<List<Copy>> arriving(RankPlan plan) {
        List<List<Copy>> lines = new ArrayList<>();
        for (List<Copy> lane : lanes) {
            lines.add(lane.stream().filter(copy -> copy.to() == plan.rank()).toList());
        }
        Writer writer = new Writer(plan);
        for (Lane lane : plan.arrivals()) {
            Map<Integer, List<Copy>> pushed = new TreeMap<>();
            for (Transfer transfer : lane.transfers()) {
                if (transfer.initiator() == Transfer.Initiator.SENDER) {
                    pushed.computeIfAbsent(transfer.from(), from -> new ArrayList<>())
                            .add(writer.copy(transfer));
                }
            }
            lines.addAll(pushed.values());
        }
        lines.removeIf(List::isEmpty);
        return lines;
    }

    /**
     * By copy of a lane: the end of the copies from it on that lie one behind the other in gathered
     * A, and are one copy if they come from memory of the same layout.
     */
    public static int[] adjacent(List<Copy> lane, DeviceLayout layout) {
        int[] ends = new int[lane.size()];
        for (int i = lane.size() - 1; i >= 0; i--) {
            boolean continues =
                    i + 1 < lane.size() && follows(lane.get(i + 1), lane.get(i), layout);
            ends[i] = continues ? ends[i + 1] : i + 1;
        }
        return ends;
    }

    private static boolean follows(Copy next, Copy copy, DeviceLayout layout) {
        long end =
                layout.at(copy.to(), copy.source(), copy.firstRow() + copy.rows(), copy.firstCol());
        return next.to() == copy.to()
                && next.cols() == copy.cols()
                && layout.at(next.to(), next.source(), next.firstRow(), next.firstCol()) == end;
    }

    /** A copy as a timeline tells of it. */
    Timeline.Span span(Copy copy, int rank, int elementBytes, long startNs, long endNs) {
        return new Timeline.Span(
                Timeline.Kind.TRANSFER,
                copy.source(),
                copy.from() == rank ? copy.to() : copy.from(),
                copy.to(),
                origins.get(copy.flag()).chunk(),
                copy.firstRow(),
                copy.rows(),
                copy.rows() * copy.cols() * elementBytes,
                startNs,
                endNs);
    }

    private static final class Writer {
        private final RankPlan plan;
        private final Chunks chunks;
        private final ArrivalCut cut;
        private final int[] slots;

        /** Whether rows wait for flags; otherwise they are multiplied after everything. */
        private final boolean gated;

        private final Map<Integer, List<MultipliedRows>> byTag = new HashMap<>();
        private final List<Origin> origins = new ArrayList<>();

        /** Rows of a chunk that are multiplied together, and the pieces that bring them. */
        private record MultipliedRows(
                long firstRow, long rows, List<Piece> pieces, boolean narrow) {}

        Writer(RankPlan plan) {
            this.plan = plan;
            this.chunks = plan.chunks();
            this.cut = plan.pacing().arrivalCut();
            this.slots = slots(plan);
            this.gated = !plan.pacing().gatherFirst();
            for (int source = 0; source < plan.ranks(); source++) {
                for (int chunk = 0; chunk < chunks.count(source); chunk++) {
                    origins.add(new Origin(source, chunk));
                }
            }
        }

        CopyList write() {
            requireCutThatFits();
            List<List<Copy>> lanes = new ArrayList<>();
            for (Lane lane : plan.lanes()) {
                List<Copy> copies = new ArrayList<>();
                for (Transfer transfer : lane.transfers()) {
                    if (cut == null) {
                        copies.add(copy(transfer));
                    } else {
                        addCut(copies, transfer, cut.chunks().get(byTag.size()));
                    }
                }
                lanes.add(copies);
            }
            return new CopyList(lanes, ranges(), origins);
        }

        /** A cut knows chunks by their turn, so they must come one by one and be multiplied so. */
        private void requireCutThatFits() {
            if (cut == null) {
                return;
            }
            long arriving = plan.lanes().stream().mapToLong(l -> l.transfers().size()).sum();
            boolean oneByOne = takesChunksOneByOne(plan);
            if (!gated || !oneByOne || plan.lanes().size() > 1 || arriving != cut.chunks().size()) {
                throw new IllegalArgumentException(
                        ("a cut of %s chunks for %s that arrive on %s lanes: expected one lane,"
                                        + " a block for each chunk, and as many chunks")
                                .formatted(cut.chunks().size(), arriving, plan.lanes().size()));
            }
        }

        private Copy copy(Transfer transfer) {
            Chunk chunk = chunks.chunk(transfer.source(), transfer.chunk());
            int awaited = transfer.isForward() ? transfer.tag() : -1;
            Piece all = new Piece(chunk.firstRow(), chunk.rows(), chunk.firstCol(), transfer.tag());
            return copy(transfer, all, chunk.cols(), awaited);
        }

        private Copy copy(Transfer transfer, Piece piece, long cols, int awaitedFlag) {
            return new Copy(
                    transfer.from(),
                    transfer.to(),
                    transfer.source(),
                    piece.firstRow(),
                    piece.rows(),
                    piece.firstCol(),
                    cols,
                    piece.flag(),
                    awaitedFlag,
                    transfer.isForward() ? slots[transfer.source()] : 0,
                    transfer.slot(),
                    transfer.credit());
        }

        private void addCut(List<Copy> copies, Transfer transfer, List<Block> blocks) {
            long row = chunks.chunk(transfer.source(), transfer.chunk()).firstRow();
            List<MultipliedRows> cutRows = new ArrayList<>();
            for (Block block : blocks) {
                List<Piece> pieces = new ArrayList<>();
                long col = 0;
                for (long cols : block.cols()) {
                    // The first piece takes the chunk's own flag.
                    boolean first = cutRows.isEmpty() && pieces.isEmpty();
                    int flag = first ? transfer.tag() : origins.size();
                    if (!first) {
                        origins.add(new Origin(transfer.source(), transfer.chunk()));
                    }
                    Piece piece = new Piece(row, block.rows(), col, flag);
                    copies.add(copy(transfer, piece, cols, -1));
                    pieces.add(piece);
                    col += cols;
                }
                cutRows.add(new MultipliedRows(row, block.rows(), pieces, block.narrow()));
                row += block.rows();
            }
            byTag.put(transfer.tag(), cutRows);
        }

        private List<RowRange> ranges() {
            List<RowRange> ranges = new ArrayList<>();
            for (RowBlock block : plan.consumption()) {
                List<MultipliedRows> cutRows =
                        byTag.get(chunks.tag(block.source(), block.firstChunk()));
                if (cutRows == null || block.source() == plan.rank()) {
                    ranges.add(
                            range(
                                    block.source(),
                                    new MultipliedRows(
                                            block.firstRow(), block.rows(), pieces(block), false)));
                } else {
                    for (MultipliedRows rows : cutRows) {
                        ranges.add(range(block.source(), rows));
                    }
                }
            }
            return ranges;
        }

        private List<Piece> pieces(RowBlock block) {
            boolean arrives =
                    gated
                            && block.source() != plan.rank()
                            && plan.storage() != RankPlan.Storage.IN_PLACE;
            List<Piece> pieces = new ArrayList<>();
            int end = arrives ? block.firstChunk() + block.chunkCount() : block.firstChunk();
            for (int c = block.firstChunk(); c < end; c++) {
                Chunk chunk = chunks.chunk(block.source(), c);
                pieces.add(
                        new Piece(
                                chunk.firstRow(),
                                chunk.rows(),
                                chunk.firstCol(),
                                chunks.tag(block.source(), c)));
            }
            return pieces;
        }

        /** Rows are counted within their shard: that is how sources hold them. */
        private RowRange range(int source, MultipliedRows rows) {
            return new RowRange(
                    source,
                    rows.firstRow(),
                    chunks.shards().firstRow(source) + rows.firstRow(),
                    rows.rows(),
                    rows.pieces(),
                    rows.narrow());
        }
    }
}
