package dev.weft.exec.host;

import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.LargePages;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.Stream;

/**
 * The buffers and words of a plan, as one rank reaches them. The layout of each rank's part of the
 * region:
 *
 * <pre>
 * byte 0    4 bytes       start word: the number of the latest call that this rank has started
 * byte 32, 48  4 bytes    words of operators on GPUs
 * byte 64   4 bytes       staged word: chunks of A that a device has brought here, over all calls
 * byte 128  16 bytes      rows of the latest calls of either parity, before their start word
 * byte 192  4 bytes       end word: the number of the latest call that this rank has awaited (only
 *                         if peers may read its results)
 * byte 256  4 bytes each  the words of signals
 * page      two copies    each open buffer in turn; one copy of those that are single
 * </pre>
 *
 * Buffers that no other rank reaches, and A if only this rank reads it, are in memory of its own. B
 * and C are elsewhere. Ranks tell each other where their buffers are, so that none needs the plans
 * of the others.
 *
 * <p>Reuse: a rank starts a call once every peer has started the one before. So peers write into
 * the copy that this rank used two calls ago, or into the one it is using. They write to a single
 * buffer only once its rank has started the call.
 */
final class StepMemory implements AutoCloseable {

    static final int COPIES = 2;
    static final long START_AT = 0;
    static final long STAGED_AT = 64;
    static final long ENDED_AT = 192;

    private static final long WORDS_AT = 256;
    private static final long PAGE_BYTES = 4096;

    private final Transport fabric;
    private final StepPlan plan;
    private final Buffer a;
    private final DType aType;
    private final Region region;
    private final int stride;
    private final long buffersAt;

    /** By buffer and rank: the offset of its first copy, bytes from copy to copy and row to row. */
    private final long[][] at;

    private final long[][] copyBytes;
    private final long[][] pitchBytes;

    /** By copy, rank and buffer; null if this rank does not reach it. */
    private final Matrix[][][] matrices = new Matrix[COPIES][][];

    /**
     * A place for A within another of the rank's buffers, instead of memory of its own.
     *
     * @param buffer the number of that buffer
     * @param row its first row there
     */
    record Place(int buffer, long row) {}

    /**
     * Collective.
     *
     * @param place where A lies; null if it has its own memory
     * @param a what this rank's A is, if it is not as the plan says; else null
     * @param arena for buffers that no other rank reaches; null if those are on a device
     */
    StepMemory(Transport fabric, StepPlan plan, DType aType, Place place, Buffer a, Arena arena) {
        this.a = a;
        this.fabric = fabric;
        this.plan = plan;
        this.aType = aType;
        int words = 0;
        int most = 1;
        for (Signal signal : (Iterable<Signal>) signals(plan)::iterator) {
            words = Math.max(words, signal.word() + 1);
            most = Math.max(most, Math.toIntExact(signal.value()));
        }
        long[][] sizes = fabric.exchange(new long[] {most, words, plan.buffers().size()});
        this.stride = most(sizes[0]);
        this.buffersAt = toPage(wordAt(most(sizes[1])));
        long next = buffersAt;
        int buffers = most(sizes[2]);
        long[] own = new long[buffers];
        long[] ownCopy = new long[buffers];
        for (int b = 0; b < plan.buffers().size(); b++) {
            Buffer buffer = plan.buffers().get(b);
            boolean placed = b == StepPlan.A && place != null;
            if (isInRegion(b) && !placed) {
                own[b] = next;
                long bytes = toPage(Math.multiplyExact(buffer.rows(), pitch(buffer)));
                ownCopy[b] = buffer.single() ? 0 : bytes;
                next += bytes + ownCopy[b];
            }
        }
        if (place != null) {
            Buffer holder = plan.buffers().get(place.buffer());
            own[StepPlan.A] = own[place.buffer()] + place.row() * pitch(holder);
            ownCopy[StepPlan.A] = ownCopy[place.buffer()];
        }
        long[] rows = new long[buffers];
        long[] pitches = new long[buffers];
        for (int b = 0; b < plan.buffers().size(); b++) {
            rows[b] = isInRegion(b) ? plan.buffers().get(b).rows() : 0;
            pitches[b] = pitch(plan.buffers().get(b));
        }
        long[][] all =
                fabric.exchange(
                        Stream.of(own, ownCopy, pitches, rows)
                                .flatMapToLong(Arrays::stream)
                                .toArray());
        this.at = Arrays.copyOfRange(all, 0, buffers);
        this.copyBytes = Arrays.copyOfRange(all, buffers, 2 * buffers);
        this.pitchBytes = Arrays.copyOfRange(all, 2 * buffers, 3 * buffers);
        this.region = fabric.allocate(next);
        try {
            view(Arrays.copyOfRange(all, 3 * buffers, all.length), arena);
        } catch (RuntimeException | Error e) {
            region.close();
            throw e;
        }
    }

    private static Stream<Signal> signals(StepPlan plan) {
        return plan.workers().stream()
                .map(Worker::steps)
                .flatMap(List::stream)
                .flatMap(
                        step ->
                                Stream.concat(
                                        step.waits().stream(), Stream.ofNullable(step.signal())));
    }

    private static int most(long[] values) {
        return Math.toIntExact(Arrays.stream(values).max().orElseThrow());
    }

    /** Whether other ranks reach a buffer of this rank. */
    private boolean isInRegion(int buffer) {
        return plan.buffers().get(buffer).open() && buffer != StepPlan.B && buffer != StepPlan.C;
    }

    private DType type(Buffer buffer) {
        return switch (buffer.kind()) {
            case A, ROWS -> aType;
            case ROUNDED_SUMS -> DType.BF16;
            case SUMS, B, C -> DType.FP32;
        };
    }

    private long pitch(Buffer buffer) {
        return buffer.cols() * type(buffer).bytes();
    }

    private static long toPage(long bytes) {
        return Math.ceilDiv(bytes, PAGE_BYTES) * PAGE_BYTES;
    }

    private void view(long[][] rows, Arena arena) {
        int ranks = fabric.size();
        for (int copy = 0; copy < COPIES; copy++) {
            matrices[copy] = new Matrix[ranks][rows.length];
        }
        for (int rank = 0; rank < ranks; rank++) {
            if (!fabric.hosts().shareMemory(rank, fabric.rank())) {
                continue;
            }
            for (int b = 0; b < rows.length; b++) {
                boolean exists = b < plan.buffers().size() && b != StepPlan.B && b != StepPlan.C;
                if (rank == fabric.rank() && exists && !isInRegion(b)) {
                    if (arena != null) {
                        allocate(b, arena);
                    }
                } else if (rank == fabric.rank() && exists || rows[b][rank] > 0) {
                    viewPart(rank, b, rows[b][rank]);
                }
            }
        }
    }

    private void viewPart(int rank, int b, long rows) {
        // Of a peer's buffers, steps read only rows of A in place.
        DType type = rank == fabric.rank() ? type(plan.buffers().get(b)) : aType;
        for (int copy = 0; copy < COPIES; copy++) {
            long pitch = pitchBytes[b][rank];
            long from = at[b][rank] + copy * copyBytes[b][rank];
            MemorySegment data = region.part(rank).asSlice(from, rows * pitch);
            long cols = pitch / type.bytes();
            matrices[copy][rank][b] = Matrix.of(data, type, rows, cols);
        }
    }

    /** Memory of this rank alone; two copies of A, which the caller fills while a call runs. */
    private void allocate(int b, Arena arena) {
        Buffer buffer = b == StepPlan.A && a != null ? a : plan.buffers().get(b);
        for (int copy = 0; copy < COPIES; copy++) {
            boolean again = copy > 0 && b != StepPlan.A;
            matrices[copy][fabric.rank()][b] =
                    again
                            ? matrices[0][fabric.rank()][b]
                            : Matrix.of(
                                    LargePages.allocate(buffer.rows() * pitch(buffer), arena),
                                    type(buffer),
                                    buffer.rows(),
                                    buffer.cols());
        }
    }

    DType aType() {
        return aType;
    }

    Region region() {
        return region;
    }

    /** Bytes of this rank's part. */
    long bytes() {
        return region.part(fabric.rank()).byteSize();
    }

    /** Where the buffers of a rank's part begin: a page, at the same offset on all ranks. */
    long buffersAt() {
        return buffersAt;
    }

    static long wordAt(int word) {
        return WORDS_AT + (long) Integer.BYTES * word;
    }

    /** By how much the values of words grow from call to call. */
    int stride() {
        return stride;
    }

    /** The copy of buffers that a call uses. */
    static int copy(int call) {
        return call & 1;
    }

    /** All of a buffer in a call. */
    Matrix matrix(int rank, int buffer, int call) {
        return matrices[copy(call)][rank][buffer];
    }

    /** Whether a peer's buffer has only one copy. */
    boolean isSingle(int rank, int buffer) {
        return buffer > StepPlan.C && copyBytes[buffer][rank] == 0;
    }

    /**
     * The move of a copy's rectangle in the calls that use {@code copy}, and the word it sets.
     *
     * @param rows how many of its rows are moved
     * @param fromShift how far they are from the place that the step names
     * @param toShift likewise where they go
     * @param wanted which rows of the call are wanted there, null if all are; the first of these is
     *     row {@code callRow} of the call
     */
    Move move(
            Step.Copy step,
            int copy,
            long rows,
            long fromShift,
            long toShift,
            BitSet wanted,
            long callRow) {
        Part from = step.from();
        Part to = step.to();
        Part own = from.rank() == fabric.rank() ? from : to;
        int elementBytes = type(plan.buffers().get(own.buffer())).bytes();
        long word = wordAt(step.signal().word());
        return new Move(
                region,
                from.rank(),
                at(from, fromShift, copy, elementBytes),
                pitchBytes[from.buffer()][from.rank()],
                to.rank(),
                at(to, toShift, copy, elementBytes),
                pitchBytes[to.buffer()][to.rank()],
                rows,
                from.cols() * elementBytes,
                word,
                // A counter must not be set out of order; its lane's mover sees to that.
                step.signal().value() > 1 || stride > 1 ? word : -1,
                wanted,
                wanted == null ? 0 : Math.toIntExact(callRow));
    }

    private long at(Part part, long shift, int copy, int elementBytes) {
        int b = part.buffer();
        return at[b][part.rank()]
                + copy * copyBytes[b][part.rank()]
                + (part.firstRow() + shift) * pitchBytes[b][part.rank()]
                + part.firstCol() * elementBytes;
    }

    /** Lets the transport gather all shards of a call into a buffer. Collective. */
    void gather(RowGather gather, int buffer, long[] rows, int call) {
        int rank = fabric.rank();
        int copy = copy(call);
        gather.gather(
                region,
                at[StepPlan.A][rank] + copy * copyBytes[StepPlan.A][rank],
                at[buffer][rank] + copy * copyBytes[buffer][rank],
                pitchBytes[buffer][rank],
                rows);
    }

    @Override
    public void close() {
        region.close();
    }
}
