package dev.weft.model;

import java.util.EnumMap;
import java.util.Map;

/**
 * How far a word can be past what somebody still awaits, over all reachable states: the waiter is
 * held at its wait, all others go as far as they can. Words within a rank are left out.
 */
final class Leads {

    private boolean allowed = true;
    private final Map<Word.Role, Integer> most = new EnumMap<>(Word.Role.class);

    /** Of no state yet. */
    Leads() {}

    static Leads of(Model model) {
        Leads leads = new Leads();
        for (int thread = 0; thread < model.threads(); thread++) {
            for (int i = 0; i < model.stepCount(thread); i++) {
                if (concerns(model.step(thread, i))) {
                    int[] at = new int[model.threads()];
                    model.runHolding(thread, i, at);
                    leads.look(model, at, thread);
                }
            }
        }
        return leads;
    }

    /** Takes in what every waiter would see in one more state. */
    void look(Model model, int[] at) {
        for (int thread = 0; thread < model.threads(); thread++) {
            look(model, at, thread);
        }
    }

    private static boolean concerns(Action step) {
        return step.waits().stream().anyMatch(wait -> wait.word().role() != Word.Role.LOCAL);
    }

    private void look(Model model, int[] at, int thread) {
        Action next = model.next(at, thread);
        if (next == null) {
            return;
        }
        for (Wait wait : next.waits()) {
            if (wait.word().role() != Word.Role.LOCAL) {
                int lead = wait.word().value(at) - wait.value();
                allowed &= lead <= wait.mostAhead();
                most.merge(wait.word().role(), lead, Math::max);
            }
        }
    }

    /** The largest, or -1 where nobody awaits such a word. */
    int of(Word.Role role) {
        return Math.max(-1, most.getOrDefault(role, -1));
    }

    /**
     * Whether no word is further on than executors allow: start words one call, signals to the end
     * of the call after.
     */
    boolean areAllowed() {
        return allowed;
    }
}
