package dev.weft.op;

/** A call under way. Awaited once, by the thread that started it or another one. */
public final class PendingCall {

    private final AllGatherMatmul operator;

    PendingCall(AllGatherMatmul operator) {
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
    public Result await() {
        return operator.finish();
    }
}
