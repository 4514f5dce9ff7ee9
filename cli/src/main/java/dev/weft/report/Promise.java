package dev.weft.report;

/** What the engine of a run promises of its product, and a verification therefore asks for. */
public enum Promise {
    /** The bits of the unfused product, and the float64 bound. */
    BITWISE,
    /** The float64 bound alone: the order of sums may depend on the number of rows in a call. */
    FLOAT64_BOUND
}
