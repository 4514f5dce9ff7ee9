package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.mpi.MpiRanks;
import dev.weft.ffi.MpiFamily;
import dev.weft.plan.Hosts;
import dev.weft.process.EveryOtherCase;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
     * @param messageBytes at most, 0 for the usual ones; small ones cut every rectangle
     */
    @EveryOtherCase
    @ParameterizedTest(name = "{0}, {1} ranks, {2} per host, messages of {3} bytes")
    @CsvSource({
        "OPEN_MPI, 1, 0, 0",
        "OPEN_MPI, 3, 1, 0",
        "OPEN_MPI, 4, 2, 1000",
        "MPICH, 3, 2, 1000"
    })
    void everyAlgorithmIsBitwiseRight(MpiFamily family, int ranks, int perHost, long messageBytes) {
        int most = perHost == 0 ? ranks : perHost;
        List<Integer> sizes = new ArrayList<>(Collections.nCopies(ranks / most, most));
        if (ranks % most > 0) {
            sizes.add(ranks % most);
        }
        MpiRanks start = MpiRanks.of(family, ranks).perHost(perHost);
        if (messageBytes > 0) {
            start.messages(messageBytes);
        }
        assertRight(start, new Hosts(sizes));
    }

    @Test
    @Tag("long")
    void soItIsOnEightRanksOfThreeHosts() {
        everyAlgorithmIsBitwiseRight(MpiFamily.OPEN_MPI, 8, 3, 0);
    }
}
