package dev.weft.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class AutoChoiceTest {

    private static Candidate priced(Algorithm algorithm, int chunks, double ns) {
        return Candidate.of(algorithm, Cut.AUTOMATIC, chunks, 1).priced(ns);
    }

    @Test
    void finalistsAreNearTheCheapestAndDirectAndSequentialAreAlwaysAmongThem() {
        Candidate ring4 = priced(Algorithm.RING, 4, 100);
        Candidate push4 = priced(Algorithm.MESH_PUSH, 4, 101);
        Candidate ring16 = priced(Algorithm.RING, 16, 102);
        Candidate pull4 = priced(Algorithm.MESH_PULL, 4, 103);
        Candidate push64 = priced(Algorithm.MESH_PUSH, 64, 104);
        Candidate both4 = priced(Algorithm.BIDIRECTIONAL_RING, 4, 105);
        Candidate ring64 = priced(Algorithm.RING, 64, 110);
        Candidate direct = priced(Algorithm.DIRECT, 64, 120);
        Candidate sequential = priced(Algorithm.SEQUENTIAL, 64, 300);
        assertEquals(
                List.of(ring64, push64, pull4, direct, sequential),
                AutoChoice.finalists(
                        List.of(
                                ring4,
                                push4,
                                ring16,
                                pull4,
                                push64,
                                both4,
                                ring64,
                                direct,
                                sequential),
                        3));
        assertEquals(
                List.of(ring16, sequential),
                AutoChoice.finalists(List.of(ring4, push4, ring16, direct, sequential), 1),
                "where memory is scarce, one beside sequential");
        assertEquals(List.of(sequential), AutoChoice.finalists(List.of(sequential), 3));
    }

    /** Whatever is tried: here a name, of which one is said to be fast. */
    private static final class NamedTrial implements Trial<String> {

        private final Algorithm fast;
        private final List<String> prepared = new ArrayList<>();
        private final List<String> closed = new ArrayList<>();

        NamedTrial(Algorithm fast) {
            this.fast = fast;
        }

        @Override
        public String prepare(Candidate candidate) {
            prepared.add(candidate.algorithm().label());
            return prepared.getLast();
        }

        @Override
        public long callNs(String name) {
            return name.equals(fast.label()) ? 100 : 200;
        }

        @Override
        public void close(String name) {
            closed.add(name);
        }
    }

    private record Found(AutoChoice.Choice<String> choice, NamedTrial trial) {}

    private static List<Found> choose(Problem problem, Algorithm fast) {
        return Ranks.call(
                problem.ranks(),
                fabric -> {
                    NamedTrial trial = new NamedTrial(fast);
                    Supplier<List<Candidate>> prices =
                            () ->
                                    fabric.rank() == 0
                                            ? new PlanSearch(Machines.named("cpu-100gbe"), problem)
                                                    .candidates(PlanSearch.Budget.QUICK)
                                            : List.of();
                    return new Found(
                            new AutoChoice(fabric, problem, "names").choose(prices, trial), trial);
                });
    }

    @Test
    void theFastestOfWhatIsTriedIsKeptAndTheOthersAreClosed() {
        Problem problem = Problem.of(Shards.of(301, 203), 64, 32, DType.FP32, DType.FP32);
        for (Found found : choose(problem, Algorithm.DIRECT)) {
            List<String> prepared = found.trial().prepared;
            assertTrue(prepared.containsAll(List.of("direct", "sequential")), prepared.toString());
            assertEquals("direct", found.choice().prepared());
            assertEquals(Algorithm.DIRECT, found.choice().chosen().algorithm());
            assertEquals(100, found.choice().chosen().measuredNs());
            List<String> others = new ArrayList<>(prepared);
            others.remove("direct");
            assertEquals(others, found.trial().closed.reversed());
        }
        for (Found again : choose(problem, Algorithm.SEQUENTIAL)) {
            assertEquals(List.of(), again.trial().prepared, "it is known");
            assertNull(again.choice().prepared());
            assertEquals(Algorithm.DIRECT, again.choice().chosen().algorithm());
        }
    }

    @Test
    void whereThereIsNothingToChooseNothingIsTried() {
        Problem none = Problem.of(Shards.of(0, 0), 64, 32, DType.FP32, DType.FP32);
        for (Found found : choose(none, Algorithm.RING)) {
            assertEquals(List.of(), found.trial().prepared);
            assertEquals(Algorithm.SEQUENTIAL, found.choice().chosen().algorithm());
        }
    }
}
