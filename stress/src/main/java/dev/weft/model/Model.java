package dev.weft.model;

import java.util.List;

/**
 * All threads of all ranks with their scripts. A state is how many steps each of them has done.
 * Immutable once made: any thread may use it.
 */
final class Model {

    private final Places places;
    private final String[] names;
    private final Action[][] steps;

    Model(List<Script> scripts, Places places) {
        this.places = places;
        this.names = scripts.stream().map(Script::toString).toArray(String[]::new);
        this.steps =
                scripts.stream()
                        .map(script -> script.steps().toArray(Action[]::new))
                        .toArray(Action[][]::new);
    }

    int threads() {
        return steps.length;
    }

    String name(int thread) {
        return names[thread];
    }

    int stepCount(int thread) {
        return steps[thread].length;
    }

    Action step(int thread, int index) {
        return steps[thread][index];
    }

    /** What a thread would do next, or null if it has done all. */
    Action next(int[] at, int thread) {
        return at[thread] == steps[thread].length ? null : steps[thread][at[thread]];
    }

    boolean isEnabled(int[] at, int thread) {
        Action next = next(at, thread);
        return next != null && next.isEnabled(at);
    }

    boolean isDone(int[] at) {
        for (int thread = 0; thread < steps.length; thread++) {
            if (at[thread] < steps[thread].length) {
                return false;
            }
        }
        return true;
    }

    /** What the next step of a thread would read wrongly, in words, or null. */
    String wrongRead(int[] at, int thread) {
        String wrong = next(at, thread).wrongRead(at, places);
        return wrong == null ? null : names[thread] + " " + wrong;
    }

    /**
     * Lets all threads but one go as far as they can while that one does not go beyond {@code
     * limit} steps. Words only grow and no step has a choice, so there is one farthest state, and
     * every state that can be reached without the held thread's next step lies before it.
     */
    void runHolding(int held, int limit, int[] at) {
        boolean moved = true;
        while (moved) {
            moved = false;
            for (int thread = 0; thread < steps.length; thread++) {
                int end = thread == held ? limit : steps[thread].length;
                while (at[thread] < end && steps[thread][at[thread]].isEnabled(at)) {
                    at[thread]++;
                    moved = true;
                }
            }
        }
    }
}
