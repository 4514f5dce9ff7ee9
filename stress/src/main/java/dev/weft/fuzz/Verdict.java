package dev.weft.fuzz;

/**
 * What became of one input.
 *
 * @param trail where in the reader it ended: inputs with the same trail teach nothing new
 * @param problem null unless it is a finding
 */
record Verdict(boolean accepted, String trail, String problem) {

    boolean isFinding() {
        return problem != null;
    }
}
