package dev.weft.sim;

/** What of a call is priced. */
public enum SimulatedView {
    /** Transfers and products, overlapped or one after the other as the algorithm has it. */
    PIPELINED,
    /** The products alone, as if every chunk were there. */
    COMPUTE_ONLY,
    /** The transfers alone. */
    COMM_ONLY
}
