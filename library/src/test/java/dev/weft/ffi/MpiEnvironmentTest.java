package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

class MpiEnvironmentTest {

    private static MpiEnvironment told(MpiFamily family, int rank, int size) {
        return new MpiEnvironment(Optional.of(family), OptionalInt.of(rank), OptionalInt.of(size));
    }

    @Test
    void mpirunOfOpenMpiTellsRankAndSize() {
        Map<String, String> version4 =
                Map.of(
                        "OMPI_COMM_WORLD_RANK", "2",
                        "OMPI_COMM_WORLD_SIZE", "3",
                        "PMIX_RANK", "2",
                        "PATH", "/bin");
        assertEquals(told(MpiFamily.OPEN_MPI, 2, 3), MpiEnvironment.of(version4));
        assertTrue(MpiEnvironment.of(version4).launched());
    }

    @Test
    void mpirunOfMpichTellsRankAndSize() {
        Map<String, String> hydra = Map.of("PMI_RANK", "0", "PMI_SIZE", "4", "PMI_FD", "6");
        assertEquals(told(MpiFamily.MPICH, 0, 4), MpiEnvironment.of(hydra));
    }

    @Test
    void srunTellsRankAndSizeWithPmixAndWithPmi() {
        Map<String, String> pmix = Map.of("PMIX_RANK", "7", "SLURM_NTASKS", "8");
        assertEquals(told(MpiFamily.OPEN_MPI, 7, 8), MpiEnvironment.of(pmix));
        Map<String, String> pmi =
                Map.of("PMI_RANK", "1", "PMI_SIZE", "2", "SLURM_NTASKS", "2", "SLURM_PROCID", "1");
        assertEquals(told(MpiFamily.MPICH, 1, 2), MpiEnvironment.of(pmi));
    }

    @Test
    void theStepOfAJobCountsAndNotTheJob() {
        Map<String, String> step =
                Map.of("PMIX_RANK", "0", "SLURM_NTASKS", "8", "SLURM_STEP_NUM_TASKS", "2");
        assertEquals(told(MpiFamily.OPEN_MPI, 0, 2), MpiEnvironment.of(step));
    }

    @Test
    void aJobOfSlurmWithoutMpiIsNoLauncher() {
        MpiEnvironment batch = MpiEnvironment.of(Map.of("SLURM_NTASKS", "8", "SLURM_PROCID", "0"));
        assertFalse(batch.launched());
        assertEquals(OptionalInt.empty(), batch.rank());
        assertEquals(OptionalInt.empty(), batch.size());
    }

    @Test
    void aSizeThatIsNotToldIsEmpty() {
        MpiEnvironment pmix = MpiEnvironment.of(Map.of("PMIX_RANK", "3"));
        assertEquals(OptionalInt.of(3), pmix.rank());
        assertEquals(OptionalInt.empty(), pmix.size());
    }

    @Test
    void aRankThatIsNoNumberIsToldWithItsVariable() {
        for (String value : new String[] {"one", "", "-1"}) {
            Map<String, String> environment = Map.of("PMI_RANK", value, "PMI_SIZE", "2");
            var e =
                    assertThrows(
                            IllegalArgumentException.class, () -> MpiEnvironment.of(environment));
            assertEquals(
                    "PMI_RANK=" + value + " in the environment: expected a number from 0",
                    e.getMessage());
        }
    }

    @Test
    void sizesAndRanksThatCannotBeAreToldWithTheirValues() {
        assertRefused(
                Map.of("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "0"),
                "OMPI_COMM_WORLD_SIZE=0 in the environment: expected a number from 1");
        assertRefused(
                Map.of("PMI_RANK", "0", "PMI_SIZE", "-1"),
                "PMI_SIZE=-1 in the environment: expected a number from 1");
        assertRefused(
                Map.of("PMIX_RANK", "0", "SLURM_NTASKS", "x"),
                "SLURM_NTASKS=x in the environment: expected a number from 1");
        // Beyond what an int holds, but not what an unsigned one does.
        assertRefused(
                Map.of("PMI_RANK", "4294967295"),
                "PMI_RANK=4294967295 in the environment: expected a number from 0");
        assertRefused(
                Map.of("PMI_RANK", "2", "PMI_SIZE", "2"),
                "PMI_RANK=2 and PMI_SIZE=2 in the environment: expected a rank below the number of"
                        + " ranks");
    }

    private static void assertRefused(Map<String, String> environment, String message) {
        var e = assertThrows(IllegalArgumentException.class, () -> MpiEnvironment.of(environment));
        assertEquals(message, e.getMessage());
    }

    @Test
    void whatIsNoLineIsNotRepeated() {
        for (String value : List.of("1\n2", "\u001b[31m", "9".repeat(500))) {
            IllegalArgumentException e =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> MpiEnvironment.of(Map.of("PMI_RANK", value)));
            assertEquals(
                    "PMI_RANK is not a number in the environment: expected a number from 0",
                    e.getMessage());
        }
    }
}
