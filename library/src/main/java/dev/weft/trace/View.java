package dev.weft.trace;

/** Which parts of a call run; all but {@link #PIPELINED} are for measurements. */
public enum View {
    /**
     * The whole call: transfers and product at once (or one after the other if the plan says so).
     */
    PIPELINED,
    /** Only the product, as if every chunk had arrived: it uses whatever the buffers hold. */
    COMPUTE_ONLY,
    /** Only the transfers. */
    COMM_ONLY
}
