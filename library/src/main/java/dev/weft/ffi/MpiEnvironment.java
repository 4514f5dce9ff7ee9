package dev.weft.ffi;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * What the environment says about the launcher that has started this process: mpirun of Open MPI
 * (OMPI_COMM_WORLD_*), mpirun of MPICH and srun with PMI (PMI_*), srun with PMIx (PMIX_RANK). Once
 * initialised, MPI itself decides rank and size. Thread-safe.
 *
 * @param family the family of the launcher, or of the matching library; empty if there was none
 * @param rank the rank of this process among those started together, if known
 * @param size how many were started together, if known
 */
public record MpiEnvironment(Optional<MpiFamily> family, OptionalInt rank, OptionalInt size) {

    private static final List<String> OPEN_MPI_SIGNS =
            List.of("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE");
    private static final List<String> MPICH_SIGNS =
            List.of("PMI_RANK", "PMI_SIZE", "PMI_FD", "HYDI_CONTROL_FD");

    /** The environment of this process. */
    public static MpiEnvironment current() {
        return of(System.getenv());
    }

    /**
     * @throws IllegalArgumentException if a rank or a size is not a number
     */
    public static MpiEnvironment of(Map<String, String> environment) {
        // Open MPI first: under srun it finds PMI's variables as well.
        if (OPEN_MPI_SIGNS.stream().anyMatch(environment::containsKey)) {
            return new MpiEnvironment(
                    Optional.of(MpiFamily.OPEN_MPI),
                    first(environment, "OMPI_COMM_WORLD_RANK", "PMIX_RANK"),
                    first(
                            environment,
                            "OMPI_COMM_WORLD_SIZE",
                            "SLURM_STEP_NUM_TASKS",
                            "SLURM_NTASKS"));
        }
        if (MPICH_SIGNS.stream().anyMatch(environment::containsKey)) {
            return new MpiEnvironment(
                    Optional.of(MpiFamily.MPICH),
                    first(environment, "PMI_RANK"),
                    first(environment, "PMI_SIZE"));
        }
        return new MpiEnvironment(Optional.empty(), OptionalInt.empty(), OptionalInt.empty());
    }

    /** Whether an MPI launcher has started this process. */
    public boolean launched() {
        return family.isPresent();
    }

    private static OptionalInt first(Map<String, String> environment, String... names) {
        for (String name : names) {
            String value = environment.get(name);
            if (value != null) {
                return OptionalInt.of(number(name, value));
            }
        }
        return OptionalInt.empty();
    }

    private static int number(String name, String value) {
        try {
            return Integer.parseUnsignedInt(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    name
                            + (value.matches("[!-~]{0,60}") ? "=" + value : " is not a number")
                            + " in the environment: expected a number from 0",
                    e);
        }
    }
}
