package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.model.Explorer.Search;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class LostSignalsTest {

    private static final int MOST_STATES = 1_000_000;

    static Stream<Setting> settings() {
        return Catalogue.forFaults().stream();
    }

    @ParameterizedTest
    @MethodSource("settings")
    void areMadeGoodOrAwaited(Setting setting) {
        LostSignals lost = LostSignals.of(setting, MOST_STATES);
        assertEquals(0, lost.wrong());
        assertTrue(lost.awaited() > 0, "no lost signal was missed by anybody");
        assertEquals(lost.signals(), lost.madeGood() + lost.awaited());
    }

    @ParameterizedTest
    @MethodSource("settings")
    void doubledSignalsDoNoHarm(Setting setting) {
        SearchResult sound = explore(setting, Faults.none());
        SearchResult doubled = explore(setting, Faults.twice());
        assertTrue(doubled.isProven());
        assertEquals(sound.states(), doubled.states());
    }

    /** Plans have no wait that other waits make superfluous. */
    @ParameterizedTest
    @MethodSource("settings")
    void everyForgottenWaitIsFound(Setting setting) {
        ForgottenWaits forgotten = ForgottenWaits.of(setting, MOST_STATES);
        assertEquals(forgotten.waits(), forgotten.found());
    }

    private static SearchResult explore(Setting setting, Faults signals) {
        return Explorer.explore(
                Protocol.model(setting, Mutant.NONE, signals), Search.FULL, MOST_STATES);
    }
}
