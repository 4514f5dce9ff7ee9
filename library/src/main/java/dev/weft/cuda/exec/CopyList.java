package dev.weft.cuda.exec;

import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.kernel.Origin;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.cuda.kernel.TileSchedule.Counter;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.fabric.transport.Awaited;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.step.StepPlan;
import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A rank's steps of a gather as copies on streams: what every lane copies, under which flag it is
 * published, and which flags the rows of the product wait for. A chunk's flag has the chunk's tag;
 * the pieces of a chunk that is cut have flags of their own behind them. Pure.
 *
 * @param lanes copies that this rank issues, by lane
 * @param arriving copies to this rank, whoever issues them
 * @param ranges the rows in the order of consumption
 * @param launches products of one shard each, if shards share buffers: then no grid may wait in
 *     one; none otherwise
 * @param origins by flag: whose rows it tells of
 */
public record CopyList(
        int rank,
        List<List<Copy>> lanes,
        List<Line> arriving,
        List<RowRange> ranges,
        List<Launch> launches,
        List<Origin> origins) {

    /**
     * One copy of a rectangle of one shard.
     *
     * @param from rank whose memory is read
     * @param to rank whose memory is written and whose flag is published
     * @param source rank that owns the rows
     * @param firstRow relative to the shard
     * @param flag at {@code to}
     * @param fromSlot which of the buffers that shards share holds it at {@code from}; else 0
     * @param toSlot likewise where it goes at {@code to}
     * @param waits steps that must be done first
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
            int fromSlot,
            int toSlot,
            List<Raised> waits) {

        public Copy {
            waits = List.copyOf(waits);
        }

        /** The part that a piece is. */
        Copy part(Piece piece, long partCols) {
            return new Copy(
                    from,
                    to,
                    source,
                    piece.firstRow(),
                    piece.rows(),
                    piece.firstCol(),
                    partCols,
                    piece.flag(),
                    fromSlot,
                    toSlot,
                    waits);
        }

        Piece piece() {
            return new Piece(firstRow, rows, firstCol, flag);
        }
    }

    /**
     * Copies to a rank that arrive one after the other.
     *
     * @param by the rank that issues them
     * @param lane of that rank
     */
    public record Line(int by, int lane, List<Copy> copies) {}

    /**
     * Rows of one shard that are multiplied together.
     *
     * @param slot the buffer in which the shard lies; 0 for the rank's own
     * @param ranges the rows, which wait for nothing once it is launched
     * @param waits what brings them
     */
    public record Launch(int source, int slot, List<RowRange> ranges, List<Raised> waits) {}

    public CopyList {
        origins = List.copyOf(origins);
        lanes = lanes.stream().map(List::copyOf).toList();
        arriving = List.copyOf(arriving);
        ranges = List.copyOf(ranges);
        launches = List.copyOf(launches);
    }

    /**
     * @param plans of all ranks
     * @param chunks what flags tell of
     * @param cut of what this rank gets; null if it is not cut further
     */
    public static CopyList of(List<StepPlan> plans, int rank, Chunks chunks, ArrivalCut cut) {
        return new CopyListWriter(plans, rank, chunks).write(cut);
    }

    /** Number of flags. */
    public int flags() {
        return origins.size();
    }

    /** Flags of what arrives. */
    public int[] due() {
        return arrivingFlags().stream().flatMapToInt(Arrays::stream).toArray();
    }

    /** Flags of what arrives, by line. */
    public List<int[]> arrivingFlags() {
        return arriving.stream()
                .map(line -> line.copies.stream().mapToInt(Copy::flag).toArray())
                .toList();
    }

    /** Whose rows the tiles of a product have. */
    public TileTimes.Owners owners(Shards shards, boolean asInC) {
        int[] senders = new int[flags()];
        for (Line line : arriving) {
            line.copies.forEach(copy -> senders[copy.flag] = copy.from);
        }
        return new TileTimes.Owners(shards, asInC, origins, senders);
    }

    /** Words by which hosts tell each other what is queued: for each flag, and for each launch. */
    public int words() {
        return flags() + launches.size();
    }

    /** How this rank waits for a copy of a line. */
    Raised raised(Copy copy, Line line) {
        Origin origin = origins.get(copy.flag);
        Awaited awaited = Awaited.chunk(copy.from, origin.source(), origin.chunk());
        return new Raised(copy.to, copy.flag, line.by, line.lane, copy.toSlot & 1, awaited);
    }

    /** Whether shards share buffers. */
    public boolean sharesBuffers() {
        return !launches.isEmpty();
    }

    /** By source: the buffer in which its shard arrives, if shards share buffers; else 0. */
    public int[] slots(int ranks) {
        int[] slots = new int[ranks];
        for (Line line : arriving) {
            line.copies.forEach(copy -> slots[copy.source] = copy.toSlot);
        }
        return slots;
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
    Timeline.Span span(Copy copy, int elementBytes, long startNs, long endNs) {
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

    /** Rows side by side become one range that waits for nothing. */
    static List<RowRange> merged(List<RowRange> run) {
        List<RowRange> merged = new ArrayList<>();
        for (RowRange range : run) {
            RowRange last = merged.isEmpty() ? null : merged.getLast();
            boolean follows =
                    last != null
                            && last.source() == range.source()
                            && last.sourceRow() + last.rows() == range.sourceRow();
            RowRange from = follows ? merged.removeLast() : range;
            long rows = follows ? last.rows() + range.rows() : range.rows();
            merged.add(
                    new RowRange(
                            from.source(), from.sourceRow(), from.row(), rows, List.of(), false));
        }
        return List.copyOf(merged);
    }

    /**
     * Words behind the flags that count what each lane has delivered: after chunk i of the n that a
     * lane brings to a rank in a call, its word there holds (call - 1) n + i. Rows wait for the
     * word of the lane that brings them before they look at their flags. A word has one writer, the
     * lane. Pure.
     *
     * @param words how many there are
     * @param arriving by flag: what tells of its chunk here; none for own chunks
     * @param lanes by lane and copy of this rank: what to write at the copy's destination
     */
    public record LaneCounters(
            int words, Map<Integer, Counter> arriving, List<List<Counter>> lanes) {

        public LaneCounters {
            arriving = Map.copyOf(arriving);
            lanes = lanes.stream().map(List::copyOf).toList();
        }

        /**
         * @param ranks of the group
         * @param mostLanes of any rank
         */
        public static LaneCounters of(CopyList list, int ranks, int mostLanes) {
            Map<Integer, Counter> arriving = new HashMap<>();
            for (Line line : list.arriving()) {
                int word = list.flags() + line.by() * mostLanes + line.lane();
                List<Counter> counters = counters(line.copies(), word);
                for (int i = 0; i < counters.size(); i++) {
                    arriving.put(line.copies().get(i).flag(), counters.get(i));
                }
            }
            List<List<Counter>> lanes = new ArrayList<>();
            for (int lane = 0; lane < list.lanes().size(); lane++) {
                int word = list.flags() + list.rank() * mostLanes + lane;
                lanes.add(counters(list.lanes().get(lane), word));
            }
            return new LaneCounters(ranks * mostLanes, arriving, lanes);
        }

        /** By word: what it holds at the end of a call. */
        public Map<Integer, Integer> reached(int call) {
            Map<Integer, Integer> all = new HashMap<>();
            arriving.values().forEach(each -> all.put(each.word(), each.last(call)));
            return all;
        }

        /** A lane has a word at every rank. */
        private static List<Counter> counters(List<Copy> lane, int word) {
            Map<Integer, Integer> counts = new HashMap<>();
            lane.forEach(copy -> counts.merge(copy.to(), 1, Integer::sum));
            Map<Integer, Integer> places = new HashMap<>();
            List<Counter> counters = new ArrayList<>();
            for (Copy copy : lane) {
                int place = places.merge(copy.to(), 1, Integer::sum);
                counters.add(new Counter(word, counts.get(copy.to()), place));
            }
            return counters;
        }
    }
}
