package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.mpi.MpiRanks;
import dev.weft.ffi.MpiFamily;
import dev.weft.plan.Hosts;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Operators between ranks that MPI has started; what they check is in {@link MpiRank}. */
@Execution(ExecutionMode.CONCURRENT)
class MpiRanksIT {

    private static void assertRight(MpiRanks start, Hosts hosts) {
        String line = start.run("right ", MpiRank.class);
        assertTrue(line.matches("right [1-9][0-9]* cases on hosts .*"), line);
        assertTrue(line.endsWith(" " + hosts), line);
    }

    /**
     * @param perHost ranks per host, 0 where all share one
     */
    @ParameterizedTest(name = "{0}, {1} ranks, {2} per host")
    @CsvSource({"OPEN_MPI, 1, 0", "OPEN_MPI, 3, 1", "OPEN_MPI, 4, 2", "MPICH, 2, 1", "MPICH, 3, 0"})
    void everyAlgorithmIsBitwiseRight(MpiFamily family, int ranks, int perHost) {
        int most = perHost == 0 ? ranks : perHost;
        List<Integer> sizes = new ArrayList<>(Collections.nCopies(ranks / most, most));
        if (ranks % most > 0) {
            sizes.add(ranks % most);
        }
        assertRight(MpiRanks.of(family, ranks).perHost(perHost), new Hosts(sizes));
    }

    @Test
    @Tag("long")
    void soItIsOnEightRanksOfThreeHosts() {
        everyAlgorithmIsBitwiseRight(MpiFamily.OPEN_MPI, 8, 3);
    }

    @ParameterizedTest
    @EnumSource
    void rectanglesInManyMessagesAreTheSame(MpiFamily family) {
        assertRight(MpiRanks.of(family, 3).perHost(2).messages(1000), Hosts.of(2, 1));
    }
}
