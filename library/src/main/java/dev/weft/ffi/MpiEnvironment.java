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
     * @throws IllegalArgumentException with a one-line message, if a rank or a size is not a
     *     number, or the rank is not below the size
     */
    public static MpiEnvironment of(Map<String, String> environment) {
        // Open MPI first: under srun it finds PMI's variables as well.
        if (OPEN_MPI_SIGNS.stream().anyMatch(environment::containsKey)) {
            return launched(
                    MpiFamily.OPEN_MPI,
                    environment,
                    List.of("OMPI_COMM_WORLD_RANK", "PMIX_RANK"),
                    List.of("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"));
        }
        if (MPICH_SIGNS.stream().anyMatch(environment::containsKey)) {
            return launched(MpiFamily.MPICH, environment, List.of("PMI_RANK"), List.of("PMI_SIZE"));
        }
        return new MpiEnvironment(Optional.empty(), OptionalInt.empty(), OptionalInt.empty());
    }

    /** Whether an MPI launcher has started this process. */
    public boolean launched() {
        return family.isPresent();
    }

    /** The first variable of each list that is set counts. */
    private static MpiEnvironment launched(
            MpiFamily family,
            Map<String, String> environment,
            List<String> ranks,
            List<String> sizes) {
        Optional<String> rankName = ranks.stream().filter(environment::containsKey).findFirst();
        Optional<String> sizeName = sizes.stream().filter(environment::containsKey).findFirst();
        OptionalInt rank = number(environment, rankName, 0);
        OptionalInt size = number(environment, sizeName, 1);
        if (rank.isPresent() && size.isPresent() && rank.getAsInt() >= size.getAsInt()) {
            throw new IllegalArgumentException(
                    "%s=%s and %s=%s in the environment: expected a rank below the number of ranks"
                            .formatted(
                                    rankName.get(),
                                    rank.getAsInt(),
                                    sizeName.get(),
                                    size.getAsInt()));
        }
        return new MpiEnvironment(Optional.of(family), rank, size);
    }

    private static OptionalInt number(
            Map<String, String> environment, Optional<String> name, int least) {
        if (name.isEmpty()) {
            return OptionalInt.empty();
        }
        String value = environment.get(name.get());
        try {
            int number = Integer.parseInt(value);
            if (number >= least) {
                return OptionalInt.of(number);
            }
        } catch (NumberFormatException e) {
            // Reported below, with the value.
        }
        throw new IllegalArgumentException(
                name.get()
                        + (value.matches("[!-~]{0,60}") ? "=" + value : " is not a number")
                        + " in the environment: expected a number from "
                        + least);
    }
}
