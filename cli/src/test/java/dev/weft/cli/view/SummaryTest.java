package dev.weft.cli.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class SummaryTest {

    @Test
    void aLimitThatNothingCanReachIsCalledByItsName() {
        assertEquals("97.5% of max(compute-only, comm-only) / pipelined", Summary.limit(0.975));
        assertTrue(Summary.limit(4.9).contains("still warming up"), Summary.limit(4.9));
    }
}
