package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Exchanges in a row: each gives the values of that exchange, not of the one before or after. */
@JCStressTest
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Every exchange gave its own values.")
@Outcome(expect = FORBIDDEN, desc = "An exchange gave values of another one.")
@State
public class ExchangeStress {

    private static final int EXCHANGES = 3;
    private static final Slots SLOTS = new Slots();

    /** Both ranks run the experiments in the same order, so that one world serves them all. */
    private final long first = EXCHANGES * SLOTS.next();

    @Actor
    public void rank0(II_Result r) {
        r.r1 = wrongValues(0);
    }

    @Actor
    public void rank1(II_Result r) {
        r.r2 = wrongValues(1);
    }

    private int wrongValues(int rank) {
        int wrong = 0;
        for (long i = first; i < first + EXCHANGES; i++) {
            long[] values = Slots.rank(rank).exchange(2 * i + rank);
            wrong += values[0] == 2 * i && values[1] == 2 * i + 1 ? 0 : 1;
        }
        return wrong;
    }
}
