package dev.weft.model;

import dev.weft.model.Explorer.Search;

/**
 * Every wait of a setting's plans is forgotten once, one at a time, in all calls. If steps are
 * taken in any order, something wrong must then be read, unless other waits say as much. Lanes that
 * count take their copies in order.
 *
 * @param waits how many there are
 * @param found of them, without how many something wrong is read
 */
record ForgottenWaits(int waits, int found) {

    static ForgottenWaits of(Setting setting, int mostStates) {
        Setting free = setting.counts() ? setting : setting.inAnyOrder();
        Faults none = Faults.none();
        Protocol.model(free, Mutant.NONE, none);
        int found = 0;
        for (int number = 0; number < none.waits(); number++) {
            Model model = Protocol.model(free, Mutant.NONE, Faults.withoutWait(number));
            SearchResult outcome = Explorer.explore(model, Search.REDUCED, mostStates);
            found += outcome.verdict() == SearchResult.Verdict.WRONG_READ ? 1 : 0;
        }
        return new ForgottenWaits(none.waits(), found);
    }

    /** Whether some are found, if there are any. */
    boolean isFine() {
        return found > 0 || waits == 0;
    }
}
