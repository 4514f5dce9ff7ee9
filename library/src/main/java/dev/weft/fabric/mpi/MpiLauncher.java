package dev.weft.fabric.mpi;

import dev.weft.fabric.World;
import dev.weft.fabric.memory.RankEnvironment;
import dev.weft.ffi.MpiEnvironment;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Joins ranks that mpirun or srun has started. */
public final class MpiLauncher implements World.Launcher {

    private boolean joined;

    @Override
    public String kind() {
        return "mpi";
    }

    @Override
    public boolean hasStarted(Map<String, String> environment) {
        try {
            return MpiEnvironment.of(environment).launched();
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException(e.getMessage(), e);
        }
    }

    @Override
    public List<MpiFabric> join(
            int ranks, Map<String, String> environment, Duration deadlineOrNull, Arena memory) {
        RankEnvironment.checkRanks(ranks);
        if (joined) {
            throw new UnsupportedOperationException(
                    """
                    ranks under MPI cannot meet again, since MPI ends the whole job when a rank is \
                    lost: end this process, and have the batch system or a loop start the job again\
                    """);
        }
        joined = true;
        Duration deadline = RankEnvironment.deadline(environment, deadlineOrNull);
        // Refuses wrong variables; a program may be alone, without a launcher.
        hasStarted(environment);
        return List.of(MpiProcess.join(deadline));
    }
}
