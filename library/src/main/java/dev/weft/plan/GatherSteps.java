package dev.weft.plan;

import static dev.weft.plan.GatherRequest.GATHERED;

import dev.weft.plan.Chunks.RowBlock;
import dev.weft.plan.GatherRequest.Option;
import dev.weft.plan.Routing.Delivery;
import dev.weft.plan.Routing.Hop;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;

/**
 * Writes gathers as steps. The words of a rank: one for each chunk of all shards, from its own
 * shard on, raised when the chunk has arrived there; one for each of its row blocks, raised when it
 * is multiplied; one for the whole gather; a counter for each lane of each rank, if lanes count;
 * and one for each shard that a peer holds, raised when the peer needs it no more. So one rank's
 * steps are written without those of all others, and if all do the same, they use the same words.
 */
final class GatherSteps {

    /** Where a rank keeps what arrives. */
    enum Storage {
        /** Every shard has its own place in a buffer of all rows: gathered A. */
        GATHERED,
        /** A ring through two buffers of one shard each, used in turn. */
        PING_PONG,
        /** Nothing arrives: rows are read from their owner's memory. */
        IN_PLACE
    }

    /**
     * How a gather is written, the same for all ranks.
     *
     * @param lanes of every rank; lanes may be empty
     * @param leastRows how many rows of a block are worth multiplying while the rest is on its way;
     *     0 if a block is multiplied as a whole
     * @param programs how many groups of workers multiply
     * @param program which of them multiplies a block
     */
    record Form(
            Storage storage,
            boolean gatherFirst,
            int lanes,
            long leastRows,
            int programs,
            ToIntFunction<RowBlock> program) {

        /** The request's programs and, if it wants that, the gather first. */
        static Form of(
                GatherRequest request,
                Storage storage,
                boolean gatherFirst,
                int lanes,
                long leastRows) {
            boolean first = gatherFirst || request.wants(Option.GATHER_FIRST);
            return new Form(
                    storage,
                    first,
                    lanes * request.programs(),
                    first ? 0 : leastRows,
                    request.programs(),
                    block -> GatherDraft.program(request, block.source(), block.firstRow()));
        }
    }

    private final GatherRequest request;
    private final Form form;
    private final IntFunction<GatherDraft> drafts;
    private final Chunks chunks;
    private final int ranks;
    private final int rank;
    private final GatherDraft draft;
    private final List<RowBlock> order;

    /** By rank: what brings each chunk there, by tag; filled on demand. */
    private final Map<Integer, Arrival[]> arrivals = new HashMap<>();

    /** By rank: how shards use its buffers; filled on demand. */
    private final Map<Integer, Turns> inTurn = new HashMap<>();

    /** A chunk's hop, and its place among those that its lane brings to the same rank. */
    private record Arrival(Hop hop, int chunk, int lane, int place) {}

    private GatherSteps(
            GatherRequest request, Form form, IntFunction<GatherDraft> drafts, int rank) {
        this.request = request;
        this.form = form;
        this.drafts = drafts;
        this.chunks = request.chunks();
        this.ranks = request.ranks();
        this.rank = rank;
        this.draft = drafts.apply(rank);
        this.order = order();
    }

    /**
     * The steps of all ranks, each rank's written on demand.
     *
     * @param drafts by rank
     */
    static List<StepPlan> write(GatherRequest request, Form form, IntFunction<GatherDraft> drafts) {
        if (form.storage() == Storage.PING_PONG && form.gatherFirst()) {
            throw new IllegalArgumentException(
                    "ping-pong buffers and products after the whole gather: expected a plan that gathers A");
        }
        if (form.storage() == Storage.PING_PONG && request.wants(Option.KEPT)) {
            throw new IllegalArgumentException(
                    "a plan with ping-pong buffers and gathered A kept: expected a plan that gathers A");
        }
        IntFunction<GatherDraft> split = rank -> drafts.apply(rank).split(request);
        return new AbstractList<>() {
            @Override
            public StepPlan get(int rank) {
                return new GatherSteps(request, form, split, rank).plan();
            }

            @Override
            public int size() {
                return request.ranks();
            }
        };
    }

    private List<RowBlock> order() {
        if (form.storage() == Storage.PING_PONG) {
            // A lane with fewer rows may be a step ahead of another. A block of its next step must
            // not hold back blocks in the buffer that this step waits for.
            List<RowBlock> inTurn = new ArrayList<>(draft.order());
            inTurn.sort(Comparator.comparingInt(b -> distance(b.source(), rank)));
            return inTurn;
        }
        if (request.wants(Option.BY_SOURCE)) {
            return ConsumptionOrder.rotated(chunks, rank);
        }
        return form.gatherFirst() ? ConsumptionOrder.natural(chunks) : draft.order();
    }

    private boolean wants(Option option) {
        return request.wants(option);
    }

    private StepPlan plan() {
        List<Worker> workers = new ArrayList<>();
        for (int lane = 0; lane < draft.lanes().size(); lane++) {
            List<Step> steps = new ArrayList<>();
            carried(lane).forEach(arrival -> steps.add(copy(arrival)));
            workers.add(new Worker(Worker.Kind.MOVER, steps));
        }
        List<Step> releases = form.storage() == Storage.PING_PONG ? releases() : List.of();
        if (!releases.isEmpty()) {
            // Not a lane: the last of the steps that a release waits for ends it.
            workers.add(new Worker(Worker.Kind.MOVER, releases));
        }
        List<List<Step>> programs = new ArrayList<>();
        for (int program = 0; program < form.programs(); program++) {
            programs.add(new ArrayList<>());
        }
        if (form.gatherFirst()) {
            programs.getFirst().add(new Step.Join(allArrivals(), gathered()));
        }
        for (int i = 0; i < order.size(); i++) {
            List<Step> program = programs.get(form.program().applyAsInt(order.get(i)));
            keep(order.get(i), program);
            program.add(multiply(i));
        }
        programs.forEach(steps -> workers.add(new Worker(Worker.Kind.MULTIPLIER, steps)));
        return new StepPlan(rank, buffers(), workers);
    }

    /** What a lane of this rank carries, chunk by chunk. */
    private List<Arrival> carried(int lane) {
        int[] brought = new int[ranks];
        List<Arrival> carried = new ArrayList<>();
        for (Hop hop : draft.lanes().get(lane)) {
            for (int chunk = hop.firstChunk(chunks); chunk < hop.endChunk(chunks); chunk++) {
                carried.add(new Arrival(hop, chunk, lane, ++brought[hop.to()]));
            }
        }
        return carried;
    }

    /** Leaves rows that do not arrive in gathered A, too, if the caller wants it. */
    private void keep(RowBlock block, List<Step> program) {
        int source = block.source();
        boolean arrives = form.storage() != Storage.IN_PLACE && source != rank;
        boolean isThere = source == rank && wants(Option.A_IN_GATHERED);
        if (!wants(Option.KEPT) || arrives || isThere) {
            return;
        }
        Part from = new Part(source, StepPlan.A, block.firstRow(), block.rows(), 0, chunks.cols());
        Part to = inGathered(rank, source, block.firstRow(), block.rows());
        List<Signal> waits = form.gatherFirst() ? List.of(gathered()) : List.of();
        program.add(new Step.Copy(from, to, firstRow(source, block.firstRow()), waits, null));
    }

    private long firstRow(int source, long rowOfShard) {
        return chunks.shards().firstRow(source) + rowOfShard;
    }

    private List<Buffer> buffers() {
        Shards shards = chunks.shards();
        List<Buffer> buffers = new ArrayList<>();
        long k = chunks.cols();
        boolean open = ranks > 1 || wants(Option.A_IN_GATHERED);
        buffers.add(new Buffer("A", Buffer.Kind.A, open, shards.rows(rank), k));
        buffers.add(new Buffer("B", Buffer.Kind.B, true, k, request.cols()));
        buffers.add(new Buffer("C", Buffer.Kind.C, true, shards.totalRows(), request.cols()));
        boolean arrives = form.storage() == Storage.GATHERED && ranks > 1;
        if (wants(Option.SIDE_BY_SIDE)) {
            long all = Math.multiplyExact(k, ranks);
            buffers.add(new Buffer("gathered", Buffer.Kind.ROWS, true, shards.maxRows(), all));
        } else if (arrives || wants(Option.KEPT)) {
            buffers.add(new Buffer("gathered", Buffer.Kind.ROWS, true, shards.totalRows(), k));
        } else if (form.storage() == Storage.PING_PONG) {
            for (int slot = 0; slot < 2; slot++) {
                String name = "buffer " + slot;
                buffers.add(new Buffer(name, Buffer.Kind.ROWS, true, true, shards.maxRows(), k));
            }
        }
        return buffers;
    }

    private Step copy(Arrival carried) {
        Hop hop = carried.hop();
        Chunk chunk = chunks.chunk(hop.source(), carried.chunk());
        List<Signal> waits = new ArrayList<>();
        if (hop.isForward()) {
            waits.add(arrival(hop.from(), chunks.tag(hop.source(), carried.chunk())));
        }
        if (form.storage() == Storage.PING_PONG) {
            int before = turns(hop.to()).before()[hop.source()];
            if (before >= 0) {
                waits.add(released(hop.to(), before));
            }
        }
        return new Step.Copy(
                place(hop.from(), chunk),
                place(hop.to(), chunk),
                firstRow(hop.source(), chunk.firstRow()),
                waits,
                arrival(carried));
    }

    /**
     * How shards use two buffers in turn, by source: those of a ring arrive one after the other,
     * the predecessor's first.
     *
     * @param before the shard that is in the buffer before it; -1 if none is
     * @param after the one that comes to it after; -1 if none does
     */
    private record Turns(int[] before, int[] after) {}

    private Turns turns(int of) {
        return inTurn.computeIfAbsent(of, this::worked);
    }

    private Turns worked(int of) {
        Turns turns = new Turns(new int[ranks], new int[ranks]);
        Arrays.fill(turns.before, -1);
        Arrays.fill(turns.after, -1);
        int[] latest = {-1, -1};
        for (int source : sources(of)) {
            int slot = slot(of, source);
            if (chunks.shards().rows(source) > 0) {
                int before = latest[slot];
                latest[slot] = source;
                turns.before[source] = before;
                if (before >= 0) {
                    turns.after[before] = source;
                }
            }
        }
        return turns;
    }

    /** The other shards in the order in which they come. */
    private int[] sources(int of) {
        return IntStream.range(1, ranks).map(step -> Math.floorMod(of - step, ranks)).toArray();
    }

    /** The buffer of a rank that a shard comes to. */
    private int slot(int of, int source) {
        return distance(source, of) % 2;
    }

    /** Where a chunk is at a rank. */
    private Part place(int at, Chunk chunk) {
        return part(at, chunk.source(), chunk.firstRow(), chunk.rows())
                .cols(chunk.firstCol(), chunk.cols());
    }

    private Part part(int at, int source, long firstRow, long count) {
        if (at != source && form.storage() == Storage.GATHERED) {
            return inGathered(at, source, firstRow, count);
        }
        int buffer = at == source ? StepPlan.A : GATHERED + slot(at, source);
        return new Part(at, buffer, firstRow, count, 0, chunks.cols());
    }

    private Part inGathered(int at, int source, long firstRow, long count) {
        boolean beside = wants(Option.SIDE_BY_SIDE);
        return new Part(
                at,
                GATHERED,
                beside ? firstRow : firstRow(source, firstRow),
                count,
                beside ? source * chunks.cols() : 0,
                chunks.cols());
    }

    private Step multiply(int index) {
        RowBlock block = order.get(index);
        int source = block.source();
        boolean arrives = form.storage() != Storage.IN_PLACE && source != rank;
        boolean reused =
                form.storage() == Storage.PING_PONG
                        && source != rank
                        && turns(rank).after()[source] >= 0;
        List<Signal> waits = new ArrayList<>();
        if (form.gatherFirst()) {
            waits.add(gathered());
        } else if (arrives) {
            for (int i = 0; i < block.chunkCount(); i++) {
                waits.add(arrival(rank, chunks.tag(source, block.firstChunk() + i)));
            }
        }
        int at = arrives ? rank : source;
        long row = firstRow(source, block.firstRow());
        return new Step.Multiply(
                part(at, source, block.firstRow(), block.rows()),
                new Part(rank, StepPlan.B, 0, chunks.cols(), 0, request.cols()),
                new Part(rank, StepPlan.C, row, block.rows(), 0, request.cols()),
                false,
                wants(Option.COUNTED) ? 0 : form.leastRows(),
                row,
                waits,
                reused ? multiplied(index) : null);
    }

    private Signal multiplied(int block) {
        return new Signal(rank, rank, chunks.total() + block, 1);
    }

    private Signal gathered() {
        return new Signal(rank, rank, firstCounter() - 1, 1);
    }

    /** The same on all ranks, since all multiply all blocks. */
    private int firstCounter() {
        return chunks.total() + order.size() + 1;
    }

    private List<Signal> allArrivals() {
        return Arrays.stream(arrivalsAt(rank))
                .filter(arrival -> arrival != null)
                .map(this::arrival)
                .toList();
    }

    /** What says that a chunk has arrived. */
    private Signal arrival(int at, int tag) {
        Arrival brings = arrivalsAt(at)[tag];
        return brings == null ? new Signal(at, at, word(at, tag), 1) : arrival(brings);
    }

    private Signal arrival(Arrival arrival) {
        Hop hop = arrival.hop();
        int by = hop.initiator();
        int to = hop.to();
        if (!wants(Option.COUNTED)) {
            int word = word(to, chunks.tag(hop.source(), arrival.chunk()));
            return new Signal(by, to, word, 1);
        }
        int word = firstCounter() + distance(to, by) * form.lanes() + arrival.lane();
        return new Signal(by, to, word, arrival.place());
    }

    private int word(int at, int tag) {
        return Math.floorMod(tag - chunks.tag(at, 0), chunks.total());
    }

    private int distance(int from, int to) {
        return Math.floorMod(to - from, ranks);
    }

    private Arrival[] arrivalsAt(int at) {
        return arrivals.computeIfAbsent(
                at, r -> index((r == rank ? draft : drafts.apply(r)).deliveries()));
    }

    private Arrival[] index(List<Delivery> deliveries) {
        Arrival[] byTag = new Arrival[chunks.total()];
        for (Delivery delivery : deliveries) {
            int place = 0;
            for (Hop hop : delivery.hops()) {
                for (int chunk = hop.firstChunk(chunks); chunk < hop.endChunk(chunks); chunk++) {
                    byTag[chunks.tag(hop.source(), chunk)] =
                            new Arrival(hop, chunk, delivery.lane(), ++place);
                }
            }
        }
        return byTag;
    }

    /**
     * What says that a rank needs a shard no more. The word is at its predecessor, which fills the
     * buffer again.
     */
    private Signal released(int holder, int source) {
        int filler = Math.floorMod(holder - 1, ranks);
        int first = firstCounter() + ranks * form.lanes();
        return new Signal(
                holder,
                filler,
                first + distance(filler, holder) * ranks + distance(holder, source),
                1);
    }

    /**
     * For each shard: its rows are multiplied and passed on, and so are those of the shard that was
     * in the same buffer before, of which this one may have left some there.
     */
    private List<Step> releases() {
        Map<Integer, List<Signal>> uses = new HashMap<>();
        for (int i = 0; i < order.size(); i++) {
            uses.computeIfAbsent(order.get(i).source(), s -> new ArrayList<>()).add(multiplied(i));
        }
        for (int lane = 0; lane < draft.lanes().size(); lane++) {
            for (Arrival passed : carried(lane)) {
                uses.computeIfAbsent(passed.hop().source(), s -> new ArrayList<>())
                        .add(arrival(passed));
            }
        }
        List<Step> joins = new ArrayList<>();
        Turns turns = turns(rank);
        for (int source : sources(rank)) {
            if (turns.after()[source] >= 0) {
                List<Signal> waits = new ArrayList<>();
                if (turns.before()[source] >= 0) {
                    waits.add(released(rank, turns.before()[source]));
                }
                waits.addAll(uses.getOrDefault(source, List.of()));
                joins.add(new Step.Join(waits, released(rank, source)));
            }
        }
        return joins;
    }
}
