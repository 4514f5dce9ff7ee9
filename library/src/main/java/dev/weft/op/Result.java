package dev.weft.op;

import dev.weft.op.exec.CallState;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.SpanLog;
import dev.weft.tensor.Matrix;
import java.util.List;
import java.util.Optional;

/**
 * What a call gave. It is a view of the operator's own buffers: products, gathered A and timeline
 * hold until the operator's next call starts.
 */
public final class Result {

    private final List<Product> products;
    private final List<Optional<Matrix>> gathered;
    private final CallState state;
    private final List<SpanLog> logs;
    private final int rank;
    private long endNs;

    Result(
            int rank,
            List<Product> products,
            OperatorMemory memory,
            boolean keepGathered,
            CallState state,
            List<SpanLog> logs) {
        this.rank = rank;
        this.products = products;
        // Made once, by slot: reading a result allocates nothing.
        this.gathered =
                keepGathered
                        ? List.of(
                                Optional.of(memory.gathered(rank, 0)),
                                Optional.of(memory.gathered(rank, 1)))
                        : List.of();
        this.state = state;
        this.logs = logs;
    }

    void ended(long endNs) {
        this.endNs = endNs;
    }

    /** allgather(A) x B, [M, N], for the first or only B. */
    public Matrix product() {
        return product(0);
    }

    /** The product with the B that was given as number {@code index}. */
    public Matrix product(int index) {
        return products.get(index).c();
    }

    /**
     * allgather(A), [M, K], if the operator was told to keep it and the call was a whole one: the
     * measuring views leave own rows out of it.
     */
    public Optional<Matrix> gathered() {
        return gathered.isEmpty() || state.view != View.PIPELINED
                ? Optional.empty()
                : gathered.get(OperatorMemory.slot(state.call));
    }

    /** From the call's start until this rank's transfers and products were done. */
    public long elapsedNs() {
        return endNs - state.startNs;
    }

    /**
     * How long the gather took where it came first (a sequential operator, or the transfers alone);
     * otherwise 0.
     */
    public long gatherNs() {
        return state.gatheredNs == 0 ? 0 : state.gatheredNs - state.startNs;
    }

    /** What every worker of this rank did. Copies the record out, so it may be kept. */
    public Timeline timeline() {
        return new Timeline(
                rank,
                state.startNs,
                elapsedNs(),
                logs.stream().map(log -> log.track(state.startNs)).toList());
    }
}
