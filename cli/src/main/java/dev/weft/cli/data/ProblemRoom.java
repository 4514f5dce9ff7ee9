package dev.weft.cli.data;

import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RunRequest;
import java.util.List;

/**
 * The bytes of a problem's matrices, each group's and each rank's counted once, as the least that
 * it needs.
 *
 * @param a of all groups
 * @param b one for all ranks
 * @param c what all ranks get of C
 * @param golden of all groups
 * @param oneA of one group
 */
public record ProblemRoom(double a, double b, double c, double golden, double oneA) {

    /**
     * @param epilogue its steps; null if there is none
     */
    public static ProblemRoom of(ProblemSpec spec, String epilogue) {
        double oneA = (double) spec.m() * spec.k() * spec.aType().bytes();
        double c =
                spec.replicaGroups().groups().stream()
                        .flatMap(List::stream)
                        .mapToDouble(
                                rank ->
                                        (double) spec.rowsOfC(rank)
                                                * EpilogueData.cols(epilogue, spec, rank))
                        .sum();
        return new ProblemRoom(
                oneA * spec.groups(),
                (double) spec.k() * spec.n() * spec.bType().bytes(),
                c * spec.outType().bytes(),
                (double) spec.groups() * spec.m() * spec.n() * Float.BYTES,
                oneA);
    }

    /** What {@code gen-data} needs. */
    public Room.Need toGenerate(boolean withGolden) {
        double made = withGolden ? golden : 0;
        return new Room.Need(withGolden ? golden + oneA + b : 0, a + b + made, 0);
    }

    /** What {@code verify} needs in memory. */
    public double toVerify() {
        return a + b + oneA;
    }

    /**
     * What a run needs.
     *
     * @param generating what its inputs need first, or null if they are there
     */
    public Room.Need toRun(RunRequest request, Room.Need generating) {
        ProblemSpec spec = request.problem();
        ExecutionSpec execution = request.execution();
        double memory = execution.place().cuda() ? a + b : a + b + Math.max(c, oneA);
        double ofRank = (double) spec.m() * spec.k() * spec.multipliedA().bytes();
        double gathered = execution.keepGathered() ? ofRank * members(spec) : 0;
        double written = (c + gathered) * (execution.npy() ? 2 : 1);
        boolean shares =
                execution.place().launcher() == Launcher.PROCESSES && !execution.place().cuda();
        // Other hosts may hold all but one rank of MPI, and only one rank beside host peers writes.
        boolean apart = execution.place().launcher() == Launcher.MPI;
        double here = apart ? memory / spec.ranks() : memory;
        double inFolder = apart || execution.place().hostPeers() ? written / spec.ranks() : written;
        return generating == null
                ? new Room.Need(here, inFolder, shared(spec, shares))
                : new Room.Need(
                        Math.max(here, generating.memory()),
                        inFolder + generating.folder(),
                        shared(spec, shares));
    }

    private double shared(ProblemSpec spec, boolean shares) {
        return shares && spec.gathers() ? a : 0;
    }

    private static int members(ProblemSpec spec) {
        return spec.replicaGroups().groups().stream().mapToInt(List::size).sum();
    }
}
