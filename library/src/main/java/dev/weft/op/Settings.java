package dev.weft.op;

/**
 * How a prepared operator behaves beyond its plan.
 *
 * @param keepGathered whether gathered A is left for the caller
 * @param summaries whether row blocks wait for their lane's counter before they look at flags
 * @param pinning where compute workers run
 */
record Settings(boolean keepGathered, boolean summaries, int computeWorkers, Pinning pinning) {}
