package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Writes gathers as steps. The words of a rank: one for each chunk of all shards, from its own
 * shard on, raised when the chunk has arrived there; one for each of its row blocks, raised when it
 * is multiplied; one for the whole gather; a counter for each lane of each rank, if lanes count;
 * and one for each shard that a peer holds, raised when the peer needs it no more. So one rank's
 * steps are written without those of all others, and if all do the same, they use the same words.
 */
public final class GatherSteps {

    /** The buffer of gathered A, if there is one: the first after those of the caller. */
    public static final int GATHERED = StepPlan.C + 1;

    /** What is wanted beyond the plan of a gather. */
    public enum Option {
        /** All of gathered A is there at the end, own rows included. */
        KEPT,
        /** A rank's A lies in its place in gathered A. */
        A_IN_GATHERED,
        /** Shards are gathered side by side. */
        SIDE_BY_SIDE,
        /** Lanes count what they have brought to a rank, instead of a flag for each chunk. */
        COUNTED
    }

    private final List<RankPlan> plans;
    private final Chunks chunks;
    private final long cols;
    private final Set<Option> options;

    /** Plans of ranks; filled on demand. */
    private final Map<Integer, RankPlan> others = new HashMap<>();

    /** By rank: how shards use its buffers; filled on demand. */
    private final Map<Integer, Buffers> inTurn = new HashMap<>();

    /** By rank: what brings each chunk there, by tag; filled on demand. */
    private final Map<Integer, Arrival[]> arrivals = new HashMap<>();

    /** A transfer, and its place among those that its lane brings to the same rank. */
    private record Arrival(Transfer transfer, int lane, int place) {}

    private GatherSteps(List<RankPlan> plans, RankPlan plan, long cols, Set<Option> options) {
        this.plans = plans;
        this.chunks = plan.chunks();
        others.put(plan.rank(), plan);
        this.cols = cols;
        this.options = options;
    }

    /** The plans as steps; each is written when it is asked for. */
    public static List<StepPlan> of(List<RankPlan> plans, long cols) {
        return of(plans, cols, Set.of());
    }

    /**
     * The steps of all ranks, each rank's written on demand.
     *
     * @param cols columns of C
     */
    public static List<StepPlan> of(List<RankPlan> plans, long cols, Set<Option> options) {
        return new AbstractList<>() {
            @Override
            public StepPlan get(int rank) {
                return new GatherSteps(plans, plans.get(rank), cols, options).plan(rank);
            }

            @Override
            public int size() {
                return plans.size();
            }
        };
    }

    private RankPlan planOf(int rank) {
        return others.computeIfAbsent(rank, plans::get);
    }

    private boolean wants(Option option) {
        return options.contains(option);
    }

    private StepPlan plan(int rank) {
        RankPlan plan = planOf(rank);
        List<Worker> workers = new ArrayList<>();
        for (Lane lane : plan.lanes()) {
            List<Step> steps = new ArrayList<>();
            int[] brought = new int[plans.size()];
            lane.transfers()
                    .forEach(t -> steps.add(copy(plan, t, lane.index(), ++brought[t.to()])));
            workers.add(new Worker(Worker.Kind.MOVER, steps));
        }
        List<Step> releases = plan.storage() == Storage.PING_PONG ? releases(plan) : List.of();
        if (!releases.isEmpty()) {
            // Not a lane: the last of the steps that a release waits for ends it.
            workers.add(new Worker(Worker.Kind.MOVER, releases));
        }
        List<List<Step>> programs = new ArrayList<>();
        for (int program = 0; program < plan.programs(); program++) {
            programs.add(new ArrayList<>());
        }
        if (plan.pacing().gatherFirst()) {
            programs.getFirst().add(new Step.Join(arrivals(plan), gathered(plan)));
        }
        for (int i = 0; i < plan.consumption().size(); i++) {
            List<Step> program = programs.get(plan.consumption().get(i).program());
            keep(plan, plan.consumption().get(i), program);
            program.add(multiply(plan, i));
        }
        programs.forEach(steps -> workers.add(new Worker(Worker.Kind.MULTIPLIER, steps)));
        return new StepPlan(rank, buffers(plan), workers);
    }

    /** Leaves rows that do not arrive in gathered A, too, if the caller wants it. */
    private void keep(RankPlan plan, RowBlock block, List<Step> program) {
        int rank = plan.rank();
        int source = block.source();
        boolean arrives = plan.storage() != Storage.IN_PLACE && source != rank;
        boolean isThere = source == rank && wants(Option.A_IN_GATHERED);
        if (!wants(Option.KEPT) || arrives || isThere) {
            return;
        }
        Part from = new Part(source, StepPlan.A, block.firstRow(), block.rows(), 0, chunks.cols());
        Part to = inGathered(rank, source, block.firstRow(), block.rows());
        List<Signal> waits = plan.pacing().gatherFirst() ? List.of(gathered(plan)) : List.of();
        program.add(new Step.Copy(from, to, firstRow(source, block.firstRow()), waits, null));
    }

    private long firstRow(int source, long rowOfShard) {
        return chunks.shards().firstRow(source) + rowOfShard;
    }

    private List<Buffer> buffers(RankPlan plan) {
        Shards shards = chunks.shards();
        List<Buffer> buffers = new ArrayList<>();
        long k = chunks.cols();
        buffers.add(new Buffer("A", Buffer.Kind.A, true, shards.rows(plan.rank()), k));
        buffers.add(new Buffer("B", Buffer.Kind.B, true, k, cols));
        buffers.add(new Buffer("C", Buffer.Kind.C, true, shards.totalRows(), cols));
        boolean arrives = plan.storage() == Storage.GATHERED && plan.ranks() > 1;
        if (wants(Option.SIDE_BY_SIDE)) {
            long all = Math.multiplyExact(k, plan.ranks());
            buffers.add(new Buffer("gathered", Buffer.Kind.ROWS, true, shards.maxRows(), all));
        } else if (arrives || wants(Option.KEPT)) {
            buffers.add(new Buffer("gathered", Buffer.Kind.ROWS, true, shards.totalRows(), k));
        } else if (plan.storage() == Storage.PING_PONG) {
            for (int slot = 0; slot < 2; slot++) {
                buffers.add(
                        new Buffer(
                                "shard " + slot,
                                Buffer.Kind.ROWS,
                                true,
                                true,
                                shards.maxRows(),
                                k));
            }
        }
        return buffers;
    }

    private Step copy(RankPlan plan, Transfer transfer, int lane, int place) {
        Chunk chunk = chunks.chunk(transfer.source(), transfer.chunk());
        List<Signal> waits = new ArrayList<>();
        if (transfer.isForward()) {
            waits.add(arrival(planOf(transfer.from()), transfer.tag()));
        }
        int slot = transfer.slot();
        if (plan.storage() == Storage.PING_PONG) {
            RankPlan receiver = planOf(transfer.to());
            int before = buffersOf(receiver).before()[transfer.source()];
            if (before >= 0) {
                waits.add(released(receiver, before));
            }
            if (transfer.isForward()) {
                slot = buffersOf(plan).slot()[transfer.source()];
            }
        }
        Part from = place(plan, transfer.from(), slot, chunk);
        Part to = place(plan, transfer.to(), transfer.slot(), chunk);
        return new Step.Copy(
                from,
                to,
                firstRow(transfer.source(), chunk.firstRow()),
                waits,
                arrival(new Arrival(transfer, lane, place)));
    }

    private Buffers buffersOf(RankPlan plan) {
        return inTurn.computeIfAbsent(plan.rank(), rank -> Buffers.of(plan));
    }

    /**
     * How shards use two buffers in turn, by source.
     *
     * @param slot the buffer in which a shard arrives; -1 if it has no rows
     * @param before the shard that is in the buffer before it; -1 if none is
     * @param after the one that comes to it after; -1 if none does
     */
    private record Buffers(int[] slot, int[] before, int[] after) {

        static Buffers of(RankPlan plan) {
            int[][] all = new int[3][plan.ranks()];
            for (int[] each : all) {
                Arrays.fill(each, -1);
            }
            for (Lane lane : plan.arrivals()) {
                lane.transfers().forEach(t -> all[0][t.source()] = t.slot());
            }
            Map<Integer, Integer> latest = new HashMap<>();
            for (int source : plan.releases()) {
                int slot = all[0][source];
                Integer before = slot < 0 ? null : latest.put(slot, source);
                if (before != null) {
                    all[1][source] = before;
                    all[2][before] = source;
                }
            }
            return new Buffers(all[0], all[1], all[2]);
        }
    }

    /** Where a chunk is at a rank. */
    private Part place(RankPlan plan, int rank, int slot, Chunk chunk) {
        return part(plan, rank, slot, chunk.source(), chunk.firstRow(), chunk.rows())
                .cols(chunk.firstCol(), chunk.cols());
    }

    private Part part(RankPlan plan, int rank, int slot, int source, long firstRow, long count) {
        if (rank != source && plan.storage() == Storage.GATHERED) {
            return inGathered(rank, source, firstRow, count);
        }
        int buffer = rank == source ? StepPlan.A : GATHERED + slot;
        return new Part(rank, buffer, firstRow, count, 0, chunks.cols());
    }

    private Part inGathered(int rank, int source, long firstRow, long count) {
        boolean beside = wants(Option.SIDE_BY_SIDE);
        return new Part(
                rank,
                GATHERED,
                beside ? firstRow : firstRow(source, firstRow),
                count,
                beside ? source * chunks.cols() : 0,
                chunks.cols());
    }

    private Step multiply(RankPlan plan, int index) {
        RowBlock block = plan.consumption().get(index);
        int rank = plan.rank();
        int source = block.source();
        boolean inPlace = plan.storage() == Storage.IN_PLACE;
        boolean arrives = !inPlace && source != rank;
        boolean pingPong = plan.storage() == Storage.PING_PONG && source != rank;
        boolean reused = pingPong && buffersOf(plan).after()[source] >= 0;
        int slot = pingPong ? buffersOf(plan).slot()[source] : 0;
        List<Signal> waits = new ArrayList<>();
        if (plan.pacing().gatherFirst()) {
            waits.add(gathered(plan));
        } else if (arrives) {
            for (int i = 0; i < block.chunkCount(); i++) {
                waits.add(arrival(plan, chunks.tag(source, block.firstChunk() + i)));
            }
        }
        int at = inPlace ? source : rank;
        return new Step.Multiply(
                part(plan, at, slot, source, block.firstRow(), block.rows()),
                new Part(rank, StepPlan.B, 0, chunks.cols(), 0, cols),
                new Part(
                        rank,
                        StepPlan.C,
                        firstRow(source, block.firstRow()),
                        block.rows(),
                        0,
                        cols),
                false,
                wants(Option.COUNTED) ? 0 : plan.pacing().stepRows(),
                firstRow(source, block.firstRow()),
                waits,
                reused ? multiplied(plan, index) : null);
    }

    private Signal multiplied(RankPlan plan, int block) {
        return new Signal(plan.rank(), plan.rank(), chunks.total() + block, 1);
    }

    private Signal gathered(RankPlan plan) {
        return new Signal(plan.rank(), plan.rank(), firstCounter(plan) - 1, 1);
    }

    private int firstCounter(RankPlan plan) {
        return chunks.total() + plan.consumption().size() + 1;
    }

    private List<Signal> arrivals(RankPlan plan) {
        List<Signal> all = new ArrayList<>();
        for (Arrival arrival : arrivals.computeIfAbsent(plan.rank(), r -> index(plan))) {
            if (arrival != null) {
                all.add(arrival(arrival));
            }
        }
        return all;
    }

    /** What says that a chunk has arrived. */
    private Signal arrival(RankPlan receiver, int tag) {
        Arrival brings = arrivals.computeIfAbsent(receiver.rank(), r -> index(receiver))[tag];
        return brings == null
                ? new Signal(receiver.rank(), receiver.rank(), word(receiver.rank(), tag), 1)
                : arrival(brings);
    }

    private Signal arrival(Arrival arrival) {
        Transfer transfer = arrival.transfer();
        int by = initiator(transfer);
        if (!wants(Option.COUNTED)) {
            return new Signal(by, transfer.to(), word(transfer.to(), transfer.tag()), 1);
        }
        int to = transfer.to();
        int lanes = planOf(to).lanes().size();
        int word = firstCounter(planOf(to)) + distance(to, by) * lanes + arrival.lane();
        return new Signal(by, transfer.to(), word, arrival.place());
    }

    private int word(int rank, int tag) {
        return Math.floorMod(tag - chunks.tag(rank, 0), chunks.total());
    }

    private int distance(int from, int to) {
        return Math.floorMod(to - from, plans.size());
    }

    private static int initiator(Transfer transfer) {
        boolean put = transfer.initiator() == Transfer.Initiator.SENDER;
        return put ? transfer.from() : transfer.to();
    }

    private Arrival[] index(RankPlan receiver) {
        Arrival[] byTag = new Arrival[chunks.total()];
        for (Lane lane : receiver.arrivals()) {
            int place = 0;
            for (Transfer transfer : lane.transfers()) {
                byTag[transfer.tag()] = new Arrival(transfer, lane.index(), ++place);
            }
        }
        return byTag;
    }

    /**
     * What says that a rank needs a shard no more. The word is at the rank that fills the buffer
     * again.
     */
    private Signal released(RankPlan holder, int source) {
        int filler = initiator(holder.arrivals().getFirst().transfers().getFirst());
        int ranks = plans.size();
        int lanes = planOf(filler).lanes().size();
        int first = firstCounter(planOf(filler)) + ranks * lanes;
        return new Signal(
                holder.rank(),
                filler,
                first + distance(filler, holder.rank()) * ranks + distance(holder.rank(), source),
                1);
    }

    /**
     * For each shard: its rows are multiplied and passed on, and so are those of the shard that was
     * in the same buffer before, of which this one may have left some there.
     */
    private List<Step> releases(RankPlan plan) {
        Map<Integer, List<Signal>> uses = new HashMap<>();
        for (int i = 0; i < plan.consumption().size(); i++) {
            int source = plan.consumption().get(i).source();
            uses.computeIfAbsent(source, s -> new ArrayList<>()).add(multiplied(plan, i));
        }
        for (Lane lane : plan.lanes()) {
            int[] brought = new int[plans.size()];
            for (Transfer t : lane.transfers()) {
                Signal passed = arrival(new Arrival(t, lane.index(), ++brought[t.to()]));
                uses.computeIfAbsent(t.source(), s -> new ArrayList<>()).add(passed);
            }
        }
        List<Step> joins = new ArrayList<>();
        Buffers buffers = buffersOf(plan);
        for (int source : plan.releases()) {
            if (buffers.after()[source] >= 0) {
                List<Signal> waits = new ArrayList<>();
                if (buffers.before()[source] >= 0) {
                    waits.add(released(plan, buffers.before()[source]));
                }
                waits.addAll(uses.getOrDefault(source, List.of()));
                joins.add(new Step.Join(waits, released(plan, source)));
            }
        }
        return joins;
    }
}
