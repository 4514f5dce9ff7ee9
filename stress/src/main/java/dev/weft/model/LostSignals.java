package dev.weft.model;

import dev.weft.model.Explorer.Search;
import dev.weft.model.SearchResult.Verdict;

/**
 * Every signal of a setting is lost once, one at a time. The calls must then either end all the
 * same, since a later signal says as much, or come to stand in a wait for that very word, which a
 * deadline ends; never may a wrong value be read.
 *
 * @param signals how many there are
 * @param madeGood of them, after how many all calls end
 * @param awaited after how many somebody waits in vain for what was lost
 * @param wrong after how many anything else happens
 */
record LostSignals(int signals, int madeGood, int awaited, int wrong) {

    static LostSignals of(Setting setting, int mostStates) {
        Faults sound = Faults.none();
        Protocol.model(setting, Mutant.NONE, sound);
        int madeGood = 0;
        int awaited = 0;
        for (int number = 0; number < sound.signals(); number++) {
            Faults signals = Faults.withoutSignal(number);
            Model model = Protocol.model(setting, Mutant.NONE, signals);
            SearchResult outcome = Explorer.explore(model, Search.REDUCED, mostStates);
            if (outcome.isProven()) {
                madeGood++;
            } else if (isAwaited(model, outcome, signals.lostSignal())) {
                awaited++;
            }
        }
        int wrong = sound.signals() - madeGood - awaited;
        return new LostSignals(sound.signals(), madeGood, awaited, wrong);
    }

    private static boolean isAwaited(Model model, SearchResult outcome, Wait lost) {
        if (outcome.verdict() != Verdict.DEADLOCK) {
            return false;
        }
        int[] at = outcome.last().stream().mapToInt(Integer::intValue).toArray();
        for (int thread = 0; thread < model.threads(); thread++) {
            Action next = model.next(at, thread);
            if (next != null && next.waits().stream().anyMatch(w -> isFor(lost, w, at))) {
                return true;
            }
        }
        return false;
    }

    private static boolean isFor(Wait lost, Wait wait, int[] at) {
        return wait.word() == lost.word() && !wait.isOver(at) && lost.value() - wait.value() >= 0;
    }
}
