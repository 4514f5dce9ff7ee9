package dev.weft.cuda.exec.sum;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.exec.sum.SumCopyList.Move;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.plan.step.Step;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.ToIntFunction;

/**
 * Peers that are host memory alone: what they would send lies there, and what they get goes there.
 */
public final class HostPeerSums implements SumExchange {

    private final List<PinnedBuffer> memory = new ArrayList<>();
    private final ToIntFunction<Step.Copy> slots;

    /** By product and slot. */
    private final List<Map<Integer, Matrix>> incoming = new ArrayList<>();

    private final List<Map<Integer, Matrix>> outgoing = new ArrayList<>();

    /**
     * @param columns of each product
     * @param slots the number by which a caller knows where a copy goes at its receiver
     */
    public HostPeerSums(SumCopyList list, List<Long> columns, ToIntFunction<Step.Copy> slots) {
        this.slots = slots;
        try {
            for (long cols : columns) {
                incoming.add(allocate(list.in(), cols, list));
                outgoing.add(allocate(list.leaving().toList(), cols, list));
            }
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    /** All rows up to the last that is moved, so that rows have the numbers that they have in C. */
    private Map<Integer, Matrix> allocate(List<Move> moves, long cols, SumCopyList list) {
        Map<Integer, Long> rows = new TreeMap<>();
        Map<Integer, DType> types = new HashMap<>();
        for (Move move : moves) {
            int slot = slots.applyAsInt(move.copy());
            rows.merge(slot, move.row() + move.rows(), Math::max);
            types.put(slot, list.type(move.part().buffer()));
        }
        Map<Integer, Matrix> matrices = new HashMap<>();
        rows.forEach(
                (slot, count) -> {
                    DType type = types.get(slot);
                    long pitch = DeviceMatrix.alignedPitch(type, cols);
                    memory.add(PinnedBuffer.allocate(count * pitch * type.bytes()));
                    MemorySegment data = memory.getLast().segment();
                    matrices.put(slot, new Matrix(data, type, count, cols, pitch));
                });
        return matrices;
    }

    /** What peers send this rank in a slot, [M or fewer, N]; to be written between calls. */
    public Optional<Matrix> incoming(int product, int slot) {
        return Optional.ofNullable(incoming.get(product).get(slot));
    }

    /** What this rank has sent to a peer's slot. */
    public Optional<Matrix> outgoing(int product, int slot) {
        return Optional.ofNullable(outgoing.get(product).get(slot));
    }

    @Override
    public boolean isStaged() {
        return false;
    }

    @Override
    public Place incoming(Move move, int call, long row) {
        return place(incoming, move, row);
    }

    @Override
    public Place outgoing(Move move, int call, long row) {
        return place(outgoing, move, row);
    }

    private Place place(List<Map<Integer, Matrix>> all, Move move, long row) {
        Matrix host = all.get(move.product()).get(slots.applyAsInt(move.copy()));
        return new Place(
                host.data().address() + host.offset(row, move.col()),
                host.rowPitch() * host.dtype().bytes());
    }

    @Override
    public void close() {
        memory.forEach(PinnedBuffer::close);
    }
}
