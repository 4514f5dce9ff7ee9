package dev.weft.model;

import java.util.List;

/**
 * What a search came to.
 *
 * @param problem what is wrong in the last state of the trace; empty if nothing is
 * @param trace steps from the beginning to the problem, as few as any
 * @param last how far each thread was in the last state that was looked at
 */
record SearchResult(
        Verdict verdict,
        int states,
        long transitions,
        int depth,
        String problem,
        List<String> trace,
        List<Integer> last) {

    /** What may come out. */
    enum Verdict {
        PROVEN("proven"),
        WRONG_READ("wrong read"),
        DEADLOCK("deadlock"),
        NOT_MONOTONE("a word falls"),
        LIMIT("not proven");

        private final String label;

        Verdict(String label) {
            this.label = label;
        }

        String label() {
            return label;
        }
    }

    SearchResult {
        trace = List.copyOf(trace);
        last = List.copyOf(last);
    }

    boolean isProven() {
        return verdict == Verdict.PROVEN;
    }
}
