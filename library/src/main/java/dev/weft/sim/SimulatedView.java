package dev.weft.sim;

/** Which part of a call is priced. */
public enum SimulatedView {
    /** Transfers and products, overlapped or one after the other, depending on the algorithm. */
    PIPELINED,
    /** Only the products, as if every chunk were there. */
    COMPUTE_ONLY,
    /** Only the transfers. */
    COMM_ONLY
}
