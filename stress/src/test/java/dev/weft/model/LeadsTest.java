package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.model.Explorer.Search;
import dev.weft.plan.Algorithm;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class LeadsTest {

    @ParameterizedTest
    @MethodSource("dev.weft.model.ExplorerTest#settings")
    void areWhatWaitersSeeInSomeState(Setting setting) {
        Model model = Protocol.model(setting, Mutant.NONE, Faults.none());
        Leads seen = new Leads();
        new Explorer(model, Search.EVERY_STEP, 2_000_000, at -> seen.look(model, at)).run();
        Leads leads = Leads.of(model);
        for (Word.Role role : Word.Role.values()) {
            assertEquals(seen.of(role), leads.of(role), role.name());
        }
        assertTrue(leads.areAllowed());
        assertEquals(1, leads.of(Word.Role.START));
    }

    @Test
    void aRankThatNobodyHoldsBackGetsTooFarAhead() {
        Setting setting = Cases.of(Algorithm.MESH_PUSH, 1, 4, 1, 0);
        Model model = Protocol.model(setting, Mutant.OWN_CALL_ONLY, Faults.none());
        assertFalse(Leads.of(model).areAllowed());
    }
}
