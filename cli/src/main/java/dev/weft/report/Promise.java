package dev.weft.report;

/** What the engine of a run promises about its product, and a verification therefore requires. */
public enum Promise {
    /** The bits of the unfused product, and the float64 bound. */
    BITWISE,
    /** Only the float64 bound: the order of sums may depend on the number of rows in a call. */
    FLOAT64_BOUND
}
