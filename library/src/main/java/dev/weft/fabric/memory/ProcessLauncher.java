package dev.weft.fabric.memory;

import dev.weft.fabric.World;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Joins ranks that {@code weft launch} or torchrun has started as processes of this host. */
public final class ProcessLauncher implements World.Launcher {

    private boolean joined;

    @Override
    public String kind() {
        return "processes";
    }

    @Override
    public boolean hasStarted(Map<String, String> environment) {
        return RankEnvironment.isSet(environment);
    }

    @Override
    public List<MemoryFabric> join(
            int ranks, Map<String, String> environment, Duration deadlineOrNull, Arena memory) {
        RankEnvironment.checkRanks(ranks);
        if (joined) {
            RankEnvironment.requireRenewal(environment);
        }
        joined = true;
        return List.of(RankEnvironment.join(environment, deadlineOrNull));
    }
}
