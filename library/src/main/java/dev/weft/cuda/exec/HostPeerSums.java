package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.exec.SumCopyList.Move;
import dev.weft.cuda.kernel.PinnedBuffer;
import dev.weft.plan.Reduction;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Peers that are host memory alone: what they would send lies there, and what they get goes there.
 */
public final class HostPeerSums implements SumExchange {

    private final List<PinnedBuffer> memory = new ArrayList<>();

    /** By product and slot; null if nothing comes or goes there. */
    private final Matrix[][] incoming;

    private final Matrix[][] outgoing;
    private final DType partType;

    /**
     * @param columns of each product
     * @param partType of sums that are added
     */
    public HostPeerSums(SumCopyList list, List<Long> columns, DType partType, int ranks) {
        int slots = Reduction.slotOf(ranks);
        this.partType = partType;
        this.incoming = new Matrix[columns.size()][slots];
        this.outgoing = new Matrix[columns.size()][slots];
        List<Move> sent = Stream.concat(list.out().stream(), list.late().stream()).toList();
        try {
            for (int i = 0; i < columns.size(); i++) {
                for (int slot = 0; slot < slots; slot++) {
                    incoming[i][slot] = allocate(slot, list.in(), columns.get(i));
                    outgoing[i][slot] = allocate(slot, sent, columns.get(i));
                }
            }
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    /** All rows up to the last that is moved, so that rows have the numbers that they have in C. */
    private Matrix allocate(int slot, List<Move> moves, long cols) {
        long rows =
                moves.stream()
                        .filter(move -> move.slot() == slot)
                        .mapToLong(move -> move.row() + move.rows())
                        .max()
                        .orElse(0);
        if (rows == 0) {
            return null;
        }
        DType type = slot < Reduction.slotOf(0) ? DType.FP32 : partType;
        long pitch = DeviceMatrix.alignedPitch(type, cols);
        memory.add(PinnedBuffer.allocate(rows * pitch * type.bytes()));
        return new Matrix(memory.getLast().segment(), type, rows, cols, pitch);
    }

    /** What peers send this rank in a slot, [M or fewer, N]; to be written between calls. */
    public Optional<Matrix> incoming(int product, int slot) {
        return Optional.ofNullable(incoming[product][slot]);
    }

    /** What this rank has sent to a peer's slot. */
    public Optional<Matrix> outgoing(int product, int slot) {
        return Optional.ofNullable(outgoing[product][slot]);
    }

    @Override
    public boolean isStaged() {
        return false;
    }

    @Override
    public Place incoming(Move move, int call) {
        return place(incoming[move.product()][move.slot()], move);
    }

    @Override
    public Place outgoing(Move move, int call) {
        return place(outgoing[move.product()][move.slot()], move);
    }

    private static Place place(Matrix host, Move move) {
        return new Place(
                host.data().address() + host.offset(move.row(), move.col()),
                host.rowPitch() * host.dtype().bytes());
    }

    @Override
    public void close() {
        memory.forEach(PinnedBuffer::close);
    }
}
