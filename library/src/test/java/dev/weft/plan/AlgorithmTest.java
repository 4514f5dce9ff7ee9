package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class AlgorithmTest {

    @Test
    void labelsNameAlgorithms() {
        for (Algorithm algorithm : Algorithm.values()) {
            assertEquals(algorithm, Algorithm.of(algorithm.label()));
        }
        assertEquals("bidirectional-ring", Algorithm.BIDIRECTIONAL_RING.label());
    }

    @Test
    void anUnknownLabelIsAnsweredWithTheKnownOnes() {
        var refused = assertThrows(IllegalArgumentException.class, () -> Algorithm.of("tree"));
        assertTrue(refused.getMessage().contains("'tree'"), refused.getMessage());
        assertTrue(refused.getMessage().contains("mesh-push, mesh-pull"), refused.getMessage());
    }
}
