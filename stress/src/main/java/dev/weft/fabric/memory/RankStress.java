package dev.weft.fabric.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.transport.Region;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.J_Result;

/** What ranks tell each other of themselves, and what they do together. */
public final class RankStress {

    private RankStress() {}

    /** Who sees that a rank has failed sees why, and who is to blame. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Too early.")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Failed, with the whole message.")
    @Outcome(expect = FORBIDDEN, desc = "Failed, with another message or cause.")
    @State
    public static class FailureMessage extends Experiment {

        private static final MemoryRegion BLOCKS = Slots.partPerSlot(ControlBlock.BYTES);
        private static final Group WORLD = Group.world(1);

        private final Health health;
        private final RuntimeException cause;

        public FailureMessage() {
            health = Slots.health(BLOCKS, slot);
            cause = new IllegalStateException("cause " + epoch);
            BLOCKS.part(slot).set(ValueLayout.JAVA_INT, ControlBlock.CAUSE_AT, -1);
            Words.intVolatile(BLOCKS.part(slot), ControlBlock.STATE_AT, ControlBlock.PRESENT);
        }

        @Actor
        public void failing() {
            health.fail(cause);
        }

        @Actor
        public void peer(II_Result r) {
            if (health.failedRank(WORLD) == 0) {
                PeerFailedException seen = health.failureOf(0);
                r.r1 = 1;
                r.r2 = seen.peer() == 0 && seen.reason().equals(cause.getMessage()) ? 1 : 0;
            }
        }
    }

    /** Threads of one rank count their work in one word, by which peers tell slow from dead. */
    @JCStressTest
    @Outcome(id = "4", expect = ACCEPTABLE, desc = "All work is counted.")
    @Outcome(expect = FORBIDDEN, desc = "Work was lost, or counted twice.")
    @State
    public static class WorkCounter extends Experiment {

        private static final MemoryRegion BLOCKS = Slots.partPerSlot(ControlBlock.BYTES);

        private final Health health;
        private final long before;

        public WorkCounter() {
            health = Slots.health(BLOCKS, slot);
            before = health.ownWork();
        }

        @Actor
        public void lane() {
            health.worked();
            health.worked();
        }

        @Actor
        public void compute() {
            health.worked();
            health.worked();
        }

        @Arbiter
        public void count(J_Result r) {
            r.r1 = health.ownWork() - before;
        }
    }

    /**
     * Exchanges in a row: each gives the values of that exchange, not of the one before or after.
     */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Every exchange gave its own values.")
    @Outcome(expect = FORBIDDEN, desc = "An exchange gave values of another one.")
    @State
    public static class Exchange extends Experiment {

        private static final int EXCHANGES = 3;

        /** Both ranks run the experiments in the same order, so that one world serves them all. */
        private final long first = EXCHANGES * number;

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

    /**
     * Ranks that are threads free a region when the last of them lets go of it: who is slow still
     * reads its peer's part, and the memory is freed once.
     */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both read what their peer had written.")
    @Outcome(expect = FORBIDDEN, desc = "A part was gone, or not its owner's.")
    @State
    public static class RegionLife extends Experiment {

        @Actor
        public void rank0(II_Result r) {
            r.r1 = peersPart(0);
        }

        @Actor
        public void rank1(II_Result r) {
            r.r2 = peersPart(1);
        }

        private int peersPart(int rank) {
            try (Region region = Slots.rank(rank).allocate(Long.BYTES)) {
                region.part(rank).set(ValueLayout.JAVA_LONG, 0, 2 * number + rank);
                Slots.rank(rank).barrier();
                long peers = region.part(1 - rank).get(ValueLayout.JAVA_LONG, 0);
                return peers == 2 * number + 1 - rank ? 1 : 0;
            }
        }
    }
}
