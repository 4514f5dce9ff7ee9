package dev.weft.op;

import dev.weft.op.Operator.View;
import dev.weft.op.exec.CallState;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.SpanLog;
import dev.weft.tensor.Matrix;
import java.util.List;
import java.util.Optional;

/** The result of a call on the CPU; one object for all calls of an operator. */
final class HostResult implements Result<Matrix> {

    private final List<Product> products;
    private final List<Optional<Matrix>> gathered;
    private final CallState state;
    private final List<SpanLog> logs;
    private final int rank;
    private long endNs;

    HostResult(
            int rank,
            List<Product> products,
            OperatorMemory memory,
            boolean keepGathered,
            CallState state,
            List<SpanLog> logs) {
        this.rank = rank;
        this.products = products;
        // Made once for each half: reading a result allocates nothing.
        this.gathered =
                keepGathered
                        ? List.of(
                                Optional.of(memory.gathered(rank, 0)),
                                Optional.of(memory.gathered(rank, 1)))
                        : List.of();
        this.state = state;
        this.logs = logs;
    }

    void ended(long atNs) {
        this.endNs = atNs;
    }

    @Override
    public Matrix product(int index) {
        return products.get(index).c(state.call);
    }

    @Override
    public Optional<Matrix> gathered() {
        return gathered.isEmpty() || state.view != View.PIPELINED
                ? Optional.empty()
                : gathered.get(OperatorMemory.half(state.call));
    }

    @Override
    public long elapsedNs() {
        return endNs - state.startNs;
    }

    @Override
    public long gatherNs() {
        return state.gatheredNs == 0 ? 0 : state.gatheredNs - state.startNs;
    }

    @Override
    public Timeline timeline() {
        List<Timeline.Track> tracks = logs.stream().map(l -> l.track(state.startNs)).toList();
        return new Timeline(rank, state.startNs, elapsedNs(), tracks);
    }
}
