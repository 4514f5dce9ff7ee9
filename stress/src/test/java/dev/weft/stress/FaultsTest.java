package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Faults in ranks that are threads: every kind, phase, operator and algorithm. */
class FaultsTest {

    /** More than a busy machine keeps a thread waiting. */
    private static final String DEADLINE = " deadline=4000";

    private static final int AT_ONCE = 4;

    static Stream<String> harmless() {
        return Stream.of(
                "none",
                "delay every=true",
                "reorder algorithm=mesh-push",
                "reorder op=matmul-allreduce algorithm=mesh-push",
                "duplicate");
    }

    /** Every operator with every algorithm that it has, in the words of a case. */
    static List<String> algorithms() {
        return Arrays.stream(Operation.values()).flatMap(FaultsTest::algorithms).toList();
    }

    private static Stream<String> algorithms(Operation operation) {
        return operation.algorithms(true).stream().map(name -> words(operation, name));
    }

    private static String words(Operation operation, String algorithm) {
        return "op=%s algorithm=%s".formatted(operation.label(), algorithm);
    }

    @ParameterizedTest
    @MethodSource("harmless")
    void resultsAreRightWhateverComesLateTwiceOrOutOfOrder(String fault) {
        for (int seed = 0; seed < 4; seed++) {
            Ending ending = Case.parse("fault=" + fault + DEADLINE + " seed=" + seed).execute();
            assertEquals(List.of(), ending.problems(), ending.run().words());
            assertEquals(4 * Case.CALLS_PER_PAIR, ending.tally().calls());
            assertTrue(ending.tally().bytes() > 0);
        }
    }

    @ParameterizedTest
    @MethodSource("algorithms")
    void ranksThatEndEndTheOthersByName(String algorithm) {
        for (Fault.Phase phase : Fault.Type.THROW.phases()) {
            // Either in every phase: both take the same path, but for who tells the others.
            boolean kills = (phase.ordinal() + algorithm.length()) % 2 == 0;
            Ending ending = run(kills ? Fault.Type.KILL : Fault.Type.THROW, phase, algorithm);
            assertEquals(List.of(), ending.problems(), ending.run().words());
            assertTrue(ending.occurred(), ending.run().words());
            ending.ranks().stream()
                    .filter(end -> end.how() == RankEnd.How.ERROR)
                    .forEach(end -> assertEquals(1, end.peer(), end.toString()));
            assertTrue(ending.errors() >= 3, ending.describe());
        }
    }

    /** Either nobody saw the nonsense, or a typed error tells of it; never a wrong result. */
    @ParameterizedTest
    @MethodSource("algorithms")
    void aCorruptedSignalIsNeverTakenForOne(String algorithm) {
        int seed = algorithm.length() % 3;
        for (Fault.Phase phase : Fault.Type.CORRUPT.phases()) {
            Ending ending =
                    Case.parse(words(Fault.Type.CORRUPT, phase, algorithm) + " seed=" + seed)
                            .execute();
            assertEquals(List.of(), ending.problems(), ending.run().words());
        }
    }

    /** Of each operator, algorithms in which every rank waits for every other one. */
    private static final List<String> MESHES =
            List.of(
                    words(Operation.GATHER, Algorithm.MESH_PUSH.label()),
                    words(Operation.SCATTER, Reduction.DIRECT.label()),
                    words(Operation.ALL, Reduction.MESH_PUSH.label()));

    /** Of each operator, algorithms in which rows or sums go from rank to rank. */
    private static final List<String> RINGS =
            List.of(
                    words(Operation.GATHER, Algorithm.RING.label()),
                    words(Operation.SCATTER, Reduction.CHAIN.label()),
                    words(Operation.ALL, Reduction.CHAIN.label()));

    @Test
    void aFrozenRankIsNamedByAllOthers() {
        for (Ending ending : run(Fault.Type.FREEZE, Fault.Phase.BETWEEN_CALLS, MESHES)) {
            assertEquals(
                    3,
                    ending.ranks().stream().filter(e -> e.peer() == 1).count(),
                    ending.run().words());
        }
    }

    @Test
    void aLaneThatHangsEndsAllRanks() {
        for (Ending ending : run(Fault.Type.STALL, Fault.Phase.LAST_CHUNK, RINGS)) {
            assertEquals(4, ending.errors(), ending.describe());
        }
    }

    /** If a later signal makes up for a lost one the result is right; otherwise it is a stall. */
    @Test
    void aLostSignalIsMadeUpForOrAStall() {
        for (Ending ending : run(Fault.Type.DROP, Fault.Phase.FIRST_CHUNK, RINGS)) {
            assertTrue(ending.occurred(), ending.run().words());
        }
    }

    @Test
    @Tag("long")
    void everyFaultInEveryPhaseWithEveryAlgorithm() {
        for (Fault.Type kind : Fault.Type.values()) {
            for (Fault.Phase phase : kind.phases()) {
                if (phase != Fault.Phase.RENDEZVOUS) {
                    boolean meshes = kind == Fault.Type.REORDER;
                    run(
                            kind,
                            phase,
                            algorithms().stream()
                                    .filter(name -> !meshes || name.endsWith("mesh-push"))
                                    .toList());
                }
            }
        }
    }

    /** At the same time, as most of it is waiting. */
    private static List<Ending> run(Fault.Type kind, Fault.Phase phase, List<String> algorithms) {
        try (ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE)) {
            List<Ending> endings =
                    algorithms.stream()
                            .map(name -> pool.submit(() -> run(kind, phase, name)))
                            .toList()
                            .stream()
                            .map(FaultsTest::ended)
                            .toList();
            endings.forEach(e -> assertEquals(List.of(), e.problems(), e.run().words()));
            return endings;
        }
    }

    private static Ending ended(Future<Ending> ending) {
        try {
            return ending.get();
        } catch (InterruptedException | ExecutionException e) {
            throw new AssertionError(e);
        }
    }

    private static Ending run(Fault.Type kind, Fault.Phase phase, String algorithm) {
        return Case.parse(words(kind, phase, algorithm)).execute();
    }

    private static String words(Fault.Type kind, Fault.Phase phase, String algorithm) {
        return "rank=1 fault="
                + kind.label()
                + " phase="
                + phase.label()
                + " "
                + algorithm
                + DEADLINE;
    }
}
