package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Faults in ranks that are threads: every kind, phase and algorithm. */
class FaultsTest {

    /** More than a busy machine keeps a thread waiting. */
    private static final String DEADLINE = " deadline=4000";

    static Stream<String> harmless() {
        return Stream.of("none", "delay every=true", "reorder algorithm=mesh-push", "duplicate");
    }

    @ParameterizedTest
    @MethodSource("harmless")
    void resultsAreRightWhateverComesLateTwiceOrOutOfOrder(String fault) {
        for (int seed = 0; seed < 4; seed++) {
            Ending ending = Cases.run(Case.parse("fault=" + fault + DEADLINE + " seed=" + seed));
            assertEquals(List.of(), ending.problems(), ending.run().words());
            assertEquals(4 * Case.CALLS_PER_PAIR, ending.tally().calls());
            assertTrue(ending.tally().bytes() > 0);
        }
    }

    /** Auto becomes one of the others. */
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "AUTO")
    void ranksThatEndEndTheOthersByName(Algorithm algorithm) {
        for (Fault.Kind kind : List.of(Fault.Kind.KILL, Fault.Kind.THROW)) {
            for (Fault.Phase phase : Fault.Kind.THROW.phases()) {
                Ending ending = run(kind, phase, algorithm);
                assertEquals(List.of(), ending.problems(), ending.run().words());
                assertTrue(ending.happened(), ending.run().words());
                ending.ranks().stream()
                        .filter(end -> end.how() == RankEnd.How.ERROR)
                        .forEach(end -> assertEquals(1, end.peer(), end.toString()));
                assertTrue(ending.errors() >= 3, ending.describe());
            }
        }
    }

    /** Either nobody saw the nonsense, or a typed error tells of it; never a wrong result. */
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "AUTO")
    void aCorruptedSignalIsNeverTakenForOne(Algorithm algorithm) {
        for (int seed = 0; seed < 3; seed++) {
            for (Fault.Phase phase : Fault.Kind.CORRUPT.phases()) {
                Ending ending =
                        Cases.run(
                                Case.parse(
                                        words(Fault.Kind.CORRUPT, phase, algorithm)
                                                + " seed="
                                                + seed));
                assertEquals(List.of(), ending.problems(), ending.run().words());
            }
        }
    }

    @Test
    void aFrozenRankIsNamedByAllOthers() {
        Ending ending = run(Fault.Kind.FREEZE, Fault.Phase.BETWEEN_CALLS, Algorithm.MESH_PUSH);
        assertEquals(List.of(), ending.problems());
        assertEquals(3, ending.ranks().stream().filter(e -> e.peer() == 1).count());
    }

    @Test
    void aLaneThatHangsEndsAllRanks() {
        Ending ending = run(Fault.Kind.STALL, Fault.Phase.LAST_CHUNK, Algorithm.RING);
        assertEquals(List.of(), ending.problems());
        assertEquals(4, ending.errors(), ending.describe());
    }

    /**
     * Where a later signal makes up for a lost one the result is right; otherwise it is a stall.
     */
    @Test
    void aLostSignalIsMadeUpForOrAStall() {
        Ending ending = run(Fault.Kind.DROP, Fault.Phase.FIRST_CHUNK, Algorithm.MESH_PULL);
        assertEquals(List.of(), ending.problems());
        assertTrue(ending.happened());
    }

    @Test
    @Tag("long")
    void everyFaultInEveryPhaseWithEveryAlgorithm() {
        for (Algorithm algorithm : Algorithm.values()) {
            for (Fault.Kind kind : Fault.Kind.values()) {
                for (Fault.Phase phase : kind.phases()) {
                    if (phase == Fault.Phase.RENDEZVOUS
                            || algorithm == Algorithm.AUTO
                            || kind == Fault.Kind.REORDER && algorithm != Algorithm.MESH_PUSH) {
                        continue;
                    }
                    Ending ending = run(kind, phase, algorithm);
                    assertEquals(List.of(), ending.problems(), ending.run().words());
                }
            }
        }
    }

    private static Ending run(Fault.Kind kind, Fault.Phase phase, Algorithm algorithm) {
        return Cases.run(Case.parse(words(kind, phase, algorithm)));
    }

    private static String words(Fault.Kind kind, Fault.Phase phase, Algorithm algorithm) {
        return "rank=1 fault="
                + kind.label()
                + " phase="
                + phase.label()
                + " algorithm="
                + algorithm.label()
                + DEADLINE;
    }
}
