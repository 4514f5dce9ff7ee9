package dev.weft.sim;

/** What of a call is priced. */
public enum Part {
    /** Transfers and products, overlapped or one after the other as the algorithm has it. */
    WHOLE,
    /** The products alone, as if every chunk were there. */
    PRODUCT,
    /** The transfers alone. */
    GATHER
}
