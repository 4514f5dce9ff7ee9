package dev.weft.op;

/** Which parts of a call are run; all but {@link #PIPELINED} serve to measure. */
public enum View {
    /** The whole call: transfers and product at once (or one after the other if so planned). */
    PIPELINED,
    /** The product alone, as if every chunk had arrived: on whatever the buffers hold. */
    COMPUTE_ONLY,
    /** The transfers alone. */
    COMM_ONLY
}
