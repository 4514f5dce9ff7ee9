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
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Writes gathers as steps. The words of a rank: one for each chunk of all shards, from its own
 * shard on, raised when the chunk has arrived there; one for each of its row blocks, raised when it
 * is multiplied; and one for the whole gather. So one rank's steps are written without those of all
 * others, and if all do the same, they use the same words.
 *
 * @param cols columns of C
 * @param others plans of ranks; filled on demand
 * @param arrivals by rank and tag: what brings a chunk there; filled on demand
 */
@SuppressWarnings("exports") // Programs cannot use steps yet.
public record GatherSteps(
        List<RankPlan> plans,
        Chunks chunks,
        long cols,
        Map<Integer, RankPlan> others,
        Map<Integer, Transfer[]> arrivals) {

    /** The first buffer after those of the caller. */
    private static final int ARRIVED = StepPlan.C + 1;

    /** The plans as steps; each is written when it is asked for. */
    public static List<StepPlan> of(List<RankPlan> plans, long cols) {
        return new AbstractList<>() {
            @Override
            public StepPlan get(int rank) {
                RankPlan plan = plans.get(rank);
                return new GatherSteps(
                                plans,
                                plan.chunks(),
                                cols,
                                new HashMap<>(Map.of(rank, plan)),
                                new HashMap<>())
                        .plan(rank);
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

    private StepPlan plan(int rank) {
        RankPlan plan = planOf(rank);
        List<Worker> workers = new ArrayList<>();
        for (Lane lane : plan.lanes()) {
            List<Step> steps = new ArrayList<>();
            lane.transfers().forEach(transfer -> steps.add(copy(plan, transfer)));
            workers.add(new Worker(Worker.Kind.MOVER, steps));
        }
        List<List<Step>> programs = new ArrayList<>();
        for (int program = 0; program < plan.programs(); program++) {
            programs.add(new ArrayList<>());
        }
        if (plan.pacing().gatherFirst()) {
            programs.getFirst().add(new Step.Join(arrivals(plan), gathered(plan)));
        }
        for (int i = 0; i < plan.consumption().size(); i++) {
            programs.get(plan.consumption().get(i).program()).add(multiply(plan, i));
        }
        programs.forEach(steps -> workers.add(new Worker(Worker.Kind.MULTIPLIER, steps)));
        return new StepPlan(rank, buffers(plan), workers);
    }

    private List<Buffer> buffers(RankPlan plan) {
        Shards shards = chunks.shards();
        List<Buffer> buffers = new ArrayList<>();
        long k = chunks.cols();
        buffers.add(new Buffer("A", Buffer.Kind.A, true, shards.rows(plan.rank()), k));
        buffers.add(new Buffer("B", Buffer.Kind.B, true, k, cols));
        buffers.add(new Buffer("C", Buffer.Kind.C, true, shards.totalRows(), cols));
        if (plan.storage() == Storage.GATHERED) {
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

    private Step copy(RankPlan plan, Transfer transfer) {
        Chunk chunk = chunks.chunk(transfer.source(), transfer.chunk());
        List<Signal> waits = new ArrayList<>();
        if (transfer.isForward()) {
            waits.add(arrival(transfer.from(), transfer.tag()));
        }
        int slot = transfer.slot();
        if (plan.storage() == Storage.PING_PONG) {
            waits.addAll(readersBefore(planOf(transfer.to()), transfer, chunk));
            if (transfer.isForward()) {
                slot = slotOf(plan, transfer.source());
            }
        }
        Part from = place(plan, transfer.from(), slot, chunk);
        Part to = place(plan, transfer.to(), transfer.slot(), chunk);
        return new Step.Copy(
                from,
                to,
                chunks.shards().firstRow(transfer.source()) + chunk.firstRow(),
                waits,
                arrival(transfer));
    }

    private static int slotOf(RankPlan plan, int source) {
        return plan.arrivals().stream()
                .flatMap(lane -> lane.transfers().stream())
                .filter(transfer -> transfer.source() == source)
                .findFirst()
                .orElseThrow(() -> new PlanException(plan.rank(), "never gets shard " + source))
                .slot();
    }

    /** Where a chunk is at a rank. */
    private Part place(RankPlan plan, int rank, int slot, Chunk chunk) {
        return part(plan, rank, slot, chunk.source(), chunk.firstRow(), chunk.rows())
                .cols(chunk.firstCol(), chunk.cols());
    }

    private Part part(RankPlan plan, int rank, int slot, int source, long firstRow, long count) {
        boolean own = rank == source;
        boolean gathered = !own && plan.storage() == Storage.GATHERED;
        int buffer = own ? StepPlan.A : gathered ? ARRIVED : ARRIVED + slot;
        long first = gathered ? chunks.shards().firstRow(source) + firstRow : firstRow;
        return new Part(rank, buffer, first, count, 0, chunks.cols());
    }

    private Step multiply(RankPlan plan, int index) {
        RowBlock block = plan.consumption().get(index);
        int rank = plan.rank();
        int source = block.source();
        boolean inPlace = plan.storage() == Storage.IN_PLACE;
        boolean arrives = !inPlace && source != rank;
        int slot = plan.storage() == Storage.PING_PONG && arrives ? slotOf(plan, source) : 0;
        List<Signal> waits = new ArrayList<>();
        if (plan.pacing().gatherFirst()) {
            waits.add(gathered(plan));
        } else if (arrives) {
            for (int i = 0; i < block.chunkCount(); i++) {
                waits.add(arrival(rank, chunks.tag(source, block.firstChunk() + i)));
            }
        }
        int at = inPlace ? source : rank;
        return new Step.Multiply(
                part(plan, at, slot, source, block.firstRow(), block.rows()),
                new Part(rank, StepPlan.B, 0, chunks.cols(), 0, cols),
                new Part(
                        rank,
                        StepPlan.C,
                        chunks.shards().firstRow(source) + block.firstRow(),
                        block.rows(),
                        0,
                        cols),
                false,
                plan.pacing().stepRows(),
                chunks.shards().firstRow(source) + block.firstRow(),
                waits,
                plan.storage() == Storage.PING_PONG ? multiplied(plan, index) : null);
    }

    private Signal multiplied(RankPlan plan, int block) {
        return new Signal(plan.rank(), plan.rank(), chunks.total() + block, 1);
    }

    private Signal gathered(RankPlan plan) {
        return new Signal(plan.rank(), plan.rank(), chunks.total() + plan.consumption().size(), 1);
    }

    private List<Signal> arrivals(RankPlan plan) {
        return plan.arrivals().stream()
                .flatMap(lane -> lane.transfers().stream())
                .map(this::arrival)
                .toList();
    }

    /** What says that a transfer has arrived. */
    private Signal arrival(Transfer transfer) {
        boolean put = transfer.initiator() == Transfer.Initiator.SENDER;
        int by = put ? transfer.from() : transfer.to();
        return new Signal(by, transfer.to(), word(transfer.to(), transfer.tag()), 1);
    }

    private Signal arrival(int receiver, int tag) {
        Transfer brings = arrivals.computeIfAbsent(receiver, r -> index(planOf(r)))[tag];
        return brings == null
                ? new Signal(receiver, receiver, word(receiver, tag), 1)
                : arrival(brings);
    }

    private int word(int rank, int tag) {
        return Math.floorMod(tag - chunks.tag(rank, 0), chunks.total());
    }

    private Transfer[] index(RankPlan receiver) {
        Transfer[] byTag = new Transfer[chunks.total()];
        for (Lane lane : receiver.arrivals()) {
            lane.transfers().forEach(transfer -> byTag[transfer.tag()] = transfer);
        }
        return byTag;
    }

    /**
     * Who reads what a chunk overwrites in a buffer that shards use in turn: products, and copies
     * that pass the rows on. A shard before may be shorter, so that rows of an earlier one are
     * still there.
     */
    private List<Signal> readersBefore(RankPlan receiver, Transfer transfer, Chunk chunk) {
        List<Signal> readers = new ArrayList<>();
        List<Integer> order = receiver.releases();
        long first = chunk.firstRow();
        long end = first + chunk.rows();
        for (int i = order.indexOf(transfer.source()) - 1; i >= 0 && first < end; i--) {
            int source = order.get(i);
            long rows = chunks.shards().rows(source);
            if (rows > first && slotOf(receiver, source) == transfer.slot()) {
                readers.addAll(readers(receiver, source, first, Math.min(rows, end)));
                first = rows;
            }
        }
        return readers;
    }

    private List<Signal> readers(RankPlan holder, int source, long first, long end) {
        List<Signal> readers = new ArrayList<>();
        for (int i = 0; i < holder.consumption().size(); i++) {
            RowBlock block = holder.consumption().get(i);
            if (block.source() == source
                    && block.firstRow() < end
                    && block.firstRow() + block.rows() > first) {
                readers.add(multiplied(holder, i));
            }
        }
        for (Lane lane : holder.lanes()) {
            for (Transfer passed : lane.transfers()) {
                Chunk chunk = chunks.chunk(passed.source(), passed.chunk());
                if (passed.source() == source
                        && chunk.firstRow() < end
                        && chunk.firstRow() + chunk.rows() > first) {
                    readers.add(arrival(passed));
                }
            }
        }
        return readers;
    }
}
