package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** A case is what its words say, whatever made it. */
class CaseTest {

    @ParameterizedTest
    @EnumSource(Case.Launcher.class)
    void wordsTellAllOfARandomCase(Case.Launcher launcher) {
        for (int seed = 0; seed < 500; seed++) {
            Case run = Case.random(seed, launcher, 700);
            assertEquals(run, Case.parse(run.words()));
            assertEquals(run, Case.random(seed, launcher, 700), "the seed tells all");
            assertTrue(run.fault().rank() < run.ranks(), run.words());
            assertTrue(run.fault().type().phases().contains(run.fault().phase()), run.words());
            if (launcher == Case.Launcher.HOSTS) {
                assertNotEquals("direct", run.algorithm());
                assertNotEquals(Fault.Type.REORDER, run.fault().type());
            }
        }
    }

    @Test
    void wordsLeftOutHaveUsualValues() {
        Case run = Case.parse("fault=kill phase=last-chunk rank=2");
        assertEquals(Case.Launcher.THREADS, run.launcher());
        assertEquals(4, run.ranks());
        assertEquals(new Fault(Fault.Type.KILL, Fault.Phase.LAST_CHUNK, 2), run.fault());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    launcher=cloud | unknown launcher 'cloud': expected threads, processes, mpi or hosts
                    fault=boredom | unknown fault 'boredom': expected one of none, delay, reorder, drop
                    phase=noon | unknown phase 'noon': expected one of rendezvous, allocation
                    ranks=0 | ranks=0: expected a number from 1 to 256
                    ranks=many | ranks=many: expected a number from 1 to 256
                    deadline=-5 | deadline=-5: expected a number from 1 to 86400000
                    colour=blue | a case with the unknown word 'colour'
                    ranks | a case with the word 'ranks': expected name=value
                    algorithm=magic | unknown algorithm 'magic'
                    op=matmul-allreduce algorithm=mesh-pull | unknown algorithm 'mesh-pull'
                    op=any algorithm=ring | op=any with algorithm=ring: expected one operator
                    op=sum | unknown operator 'sum': expected one of allgather-matmul, matmul-reduce-
                    """)
    void nonsenseIsRefusedByName(String words, String message) {
        String said =
                assertThrows(IllegalArgumentException.class, () -> Case.parse(words)).getMessage();
        assertTrue(said.startsWith(message), said);
        assertFalse(said.contains("\n"));
    }
}
