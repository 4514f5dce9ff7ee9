package dev.weft.op.exec;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The memory of a product that is summed over ranks; peers can reach it. The layout of each rank's
 * part:
 *
 * <pre>
 * byte 0      4 bytes       start word: the number of the latest call this rank has started
 * bytes 32, 48  4 bytes     words of operators on GPUs
 * byte 256    4 bytes each  flags, one per slot and chunk: the number of the latest call in which
 *                           it arrived; then two more per chunk, which the rank raises for its own
 *                           lanes: multiplied, and summed
 * page        2 halves      this rank's A, [M, its K]; on a GPU, nothing
 * page        2 halves      by slot: sums, of all rows or of the rank's own; fp32, or those to add
 *                           in the type in which they travel
 * </pre>
 *
 * The first slot has what the rank multiplies itself: it continues arriving sums in place. A flag
 * and its chunk's place are written by the one rank whose lane delivers it.
 *
 * <p>Reuse: a rank starts a call once every peer has started the one before. So peers write into
 * the half that this rank used two calls ago, or into the one it is using. On GPUs, where a rank
 * starts a call once all have ended the one before, both halves of the sums are the same memory.
 */
public final class SumMemory implements LaneMemory {

    public static final long START_AT = 0;

    private static final long FLAGS_AT = 256;
    private static final long PAGE_BYTES = 4096;

    private final Region region;
    private final int rank;
    private final Chunks chunks;
    private final Shards inner;

    /** Null if A is not kept here. */
    private final DType aType;

    private final int slots;
    private final DType wire;

    /** By rank and slot: whether it has rows of other ranks, and whether any arrive. */
    private final boolean[][] ofOthers;

    private final boolean[][] arrive;

    /** By slot and tag: the wait for a chunk that arrives at this rank; else null. */
    private final Awaited[][] arriving;

    /** By tag: whether other ranks' sums arrive here to be added. */
    private final boolean[] added;

    private final Matrix[][] inputs;
    private final Matrix[][] sums;

    /**
     * Collective.
     *
     * @param plans the plans of all ranks
     * @param inner how K is spread over the ranks
     * @param aType null if A is kept elsewhere
     * @param wire the type of sums that are sent to be added
     */
    public SumMemory(
            Transport fabric, List<RankPlan> plans, Shards inner, DType aType, DType wire) {
        RankPlan plan = plans.get(fabric.rank());
        this.rank = fabric.rank();
        this.chunks = plan.chunks();
        this.inner = inner;
        this.aType = aType;
        int ranks = plans.size();
        this.slots = Reduction.slotOf(ranks);
        this.wire = wire;
        this.ofOthers = new boolean[ranks][slots];
        this.arrive = new boolean[ranks][slots];
        this.arriving = new Awaited[slots][chunks.total()];
        this.added = new boolean[chunks.total()];
        for (RankPlan each : plans) {
            ofOthers[each.rank()][Reduction.PARTIAL] =
                    each.consumption().stream().anyMatch(b -> b.source() != each.rank());
            for (Lane lane : each.arrivals()) {
                lane.transfers().forEach(this::arrives);
            }
        }
        this.region = fabric.allocate(slotAt(rank, OperatorMemory.HALVES - 1, slots));
        this.inputs = new Matrix[OperatorMemory.HALVES][ranks];
        this.sums = new Matrix[OperatorMemory.HALVES][slots];
        for (int half = 0; half < OperatorMemory.HALVES; half++) {
            for (int r = 0; r < ranks; r++) {
                if (aType != null && plan.sumsFor(r, fabric.hosts())) {
                    long k = inner.rows(r);
                    MemorySegment data = region.part(r).asSlice(inputAt(r, half), inputBytes(r));
                    inputs[half][r] = new Matrix(data, aType, rows(), k, k);
                }
            }
            for (int slot = 0; slot < slots; slot++) {
                long count = slotRows(rank, slot);
                MemorySegment data =
                        region.part(rank)
                                .asSlice(slotAt(rank, half, slot), count * pitchBytes(slot));
                sums[half][slot] =
                        new Matrix(data, type(slot), count, chunks.cols(), chunks.cols());
            }
        }
    }

    private void arrives(Transfer transfer) {
        int to = transfer.to();
        arrive[to][transfer.slot()] = true;
        ofOthers[to][transfer.slot()] |= transfer.source() != to;
        if (to == rank) {
            added[transfer.tag()] |= transfer.slot() >= Reduction.slotOf(0);
            arriving[transfer.slot()][transfer.tag()] = awaited(what(transfer), transfer);
        }
    }

    @Override
    public String what(Transfer transfer) {
        return switch (transfer.slot()) {
            case Reduction.PARTIAL -> Awaited.PARTIAL_SUMS;
            case Reduction.WHOLE -> Awaited.WHOLE_SUMS;
            default -> Awaited.PEER_SUMS;
        };
    }

    private static Awaited awaited(String what, Transfer transfer) {
        return new Awaited(what, transfer.from(), transfer.source(), transfer.chunk(), 1);
    }

    /** The type of the sums in a slot. */
    private DType type(int slot) {
        return slot < Reduction.slotOf(0) ? DType.FP32 : wire;
    }

    /** The type of sums that are sent to be added: each row begins where its fp32 sums did. */
    public DType wire() {
        return wire;
    }

    private long pitchBytes(int slot) {
        return chunks.cols() * type(slot).bytes();
    }

    private long rows() {
        return chunks.shards().totalRows();
    }

    /** How many rows of C a slot of {@code of} holds. */
    private long slotRows(int of, int slot) {
        if (ofOthers[of][slot]) {
            return rows();
        }
        boolean own = slot == Reduction.PARTIAL || arrive[of][slot];
        return own ? chunks.shards().rows(of) : 0;
    }

    private static long toPage(long bytes) {
        return Math.ceilDiv(bytes, PAGE_BYTES) * PAGE_BYTES;
    }

    private long inputAt(int of, int half) {
        long first = toPage(flagAt(slots + 2, 0));
        return first + half * toPage(inputBytes(of));
    }

    private long inputBytes(int of) {
        return aType == null ? 0 : Matrix.contiguousBytes(aType, rows(), inner.rows(of));
    }

    /** Where this rank's sums begin in its part: a page. */
    public long sumsAt() {
        return slotAt(rank, 0, 0);
    }

    private long slotAt(int of, int half, int slot) {
        long at = inputAt(of, OperatorMemory.HALVES);
        int last = aType == null ? 0 : half;
        for (int h = 0; h <= last; h++) {
            for (int s = 0; s < (h == last ? slot : slots); s++) {
                at += toPage(Math.multiplyExact(slotRows(of, s), pitchBytes(s)));
            }
        }
        return at;
    }

    @Override
    public Region region() {
        return region;
    }

    public long bytes() {
        return region.part(rank).byteSize();
    }

    /** The A of {@code of} in a call: this rank's, or one whose K it sums over. */
    public Matrix input(int of, int call) {
        return inputs[OperatorMemory.half(call)][of];
    }

    /** The sums in this rank's slot in a call, from {@link #firstRow} on. */
    public Matrix sums(int slot, int call) {
        return sums[OperatorMemory.half(call)][slot];
    }

    /** The first row of C in this rank's slot. */
    public long firstRow(int slot) {
        return firstRow(rank, slot);
    }

    private long firstRow(int of, int slot) {
        return slotRows(of, slot) == rows() ? 0 : chunks.shards().firstRow(of);
    }

    /** Whether a chunk arrives at this rank in that slot. */
    public boolean arrives(int slot, int tag) {
        return arriving[slot][tag] != null;
    }

    /** The wait for a chunk that arrives. */
    public Awaited arrival(int slot, int tag) {
        return arriving[slot][tag];
    }

    /** The flag that says that a chunk has arrived in a slot. */
    public long flagAt(int slot, int tag) {
        return FLAGS_AT + Integer.BYTES * ((long) slot * chunks.total() + tag);
    }

    /** The flag that tells this rank's lanes that a chunk is multiplied. */
    public long multipliedAt(int tag) {
        return flagAt(slots, tag);
    }

    /** The flag that tells this rank's lanes that it has added everything to a chunk's sums. */
    public long summedAt(int tag) {
        return flagAt(slots + 1, tag);
    }

    private long chunkAt(int of, int half, int slot, Chunk chunk) {
        long row = chunks.shards().firstRow(chunk.source()) + chunk.firstRow();
        return slotAt(of, half, slot) + (row - firstRow(of, slot)) * pitchBytes(slot);
    }

    /** Whether the transfer forwards whole sums that arrived from another rank. */
    private boolean forwards(Transfer transfer) {
        return transfer.slot() == Reduction.WHOLE && arrives(Reduction.WHOLE, transfer.tag());
    }

    @Override
    public Move move(Transfer transfer, Chunk chunk, int half, long counterAt) {
        int fromSlot = forwards(transfer) ? Reduction.WHOLE : Reduction.PARTIAL;
        return new Move(
                region,
                transfer.from(),
                chunkAt(transfer.from(), half, fromSlot, chunk),
                pitchBytes(fromSlot),
                transfer.to(),
                chunkAt(transfer.to(), half, transfer.slot(), chunk),
                pitchBytes(transfer.slot()),
                chunk.rows(),
                pitchBytes(transfer.slot()),
                flagAt(transfer.slot(), transfer.tag()),
                counterAt);
    }

    @Override
    public Awaited need(Transfer transfer) {
        return forwards(transfer)
                ? arrival(Reduction.WHOLE, transfer.tag())
                : awaited(Awaited.OWN_THREAD, transfer);
    }

    @Override
    public long neededAt(Transfer transfer) {
        if (forwards(transfer)) {
            return flagAt(Reduction.WHOLE, transfer.tag());
        }
        return transfer.slot() == Reduction.WHOLE || added[transfer.tag()]
                ? summedAt(transfer.tag())
                : multipliedAt(transfer.tag());
    }

    @Override
    public int needed(Transfer transfer, int call) {
        return call;
    }
}
