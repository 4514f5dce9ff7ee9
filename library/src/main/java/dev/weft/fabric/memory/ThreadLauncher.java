package dev.weft.fabric.memory;

import dev.weft.fabric.World;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Starts ranks as threads of this JVM. */
public final class ThreadLauncher implements World.Launcher {

    @Override
    public String kind() {
        return "threads";
    }

    @Override
    public List<ThreadFabric> join(
            int ranks, Map<String, String> environment, Duration deadlineOrNull, Arena memory) {
        RankEnvironment.checkRanks(ranks);
        Duration deadline = RankEnvironment.deadline(Map.of(), deadlineOrNull);
        return List.of(ThreadFabric.world(ranks, deadline, memory));
    }
}
