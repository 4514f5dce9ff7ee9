package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class VerificationTest {

    private static Verification found(
            Promise promise, boolean exact, boolean bitwise, boolean bound) {
        return new Verification(promise, exact, bitwise, bound, null, 0, 0, 10, 10, false, 0);
    }

    @Test
    void bitsMustBeThoseOfTheUnfusedProductWhereTheyArePromised() {
        assertTrue(found(Promise.BITWISE, true, true, true).passed());
        Verification differs = found(Promise.BITWISE, true, false, true);
        assertFalse(differs.passed());
        assertEquals("a product differs from the unfused one", differs.describeFailure());
    }

    /** A part of the columns of which not all rows were compared must have passed Freivalds. */
    @Test
    void columnsOfTheSameRowsAreCountedOnceAndMustAllBeRight() {
        Verification all = found(Promise.BITWISE, true, true, true);
        Verification some =
                new Verification(Promise.BITWISE, null, true, true, null, 0, 0, 4, 10, true, 0);
        Verification refused =
                new Verification(Promise.BITWISE, null, true, true, null, 0, 0, 4, 10, false, 0);
        Verification both = all.andColumns(some);
        assertEquals(4, both.checkedRows());
        assertEquals(10, both.totalRows());
        assertTrue(both.passed());
        assertFalse(all.andColumns(refused).passed());
        assertFalse(refused.andColumns(all).passed());
        assertEquals(20, all.and(some).totalRows());
    }

    @Test
    void elsewhereTheBoundAndTheGatherMustStillHold() {
        assertTrue(found(Promise.FLOAT64_BOUND, true, false, true).passed());
        assertFalse(found(Promise.FLOAT64_BOUND, false, false, true).passed());
        Verification off = found(Promise.FLOAT64_BOUND, true, false, false);
        assertFalse(off.passed());
        assertEquals("the float64 bound is exceeded (max_abs_err 0.0)", off.describeFailure());
    }
}
