package dev.weft.op;

/**
 * A call under way. Awaited once, by the thread that started it or another one; of two that are
 * under way, the earlier one first.
 *
 * @param <M> the matrices: in host memory, or on a GPU
 */
public final class PendingCall<M> {

    private final Operator<M> operator;

    PendingCall(Operator<M> operator) {
        this.operator = operator;
    }

    /** Whether {@link #await} would return at once. */
    public boolean isDone() {
        return operator.isDone();
    }

    /**
     * Waits for the end of the call.
     *
     * @throws dev.weft.fabric.FabricException if a peer stalls, dies, leaves or fails
     */
    public Result<M> await() {
        return operator.await();
    }
}
