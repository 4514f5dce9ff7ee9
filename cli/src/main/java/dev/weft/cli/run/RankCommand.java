package dev.weft.cli.run;

import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.message.RankFile;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** One rank of a run with processes; started by the command, not by users. */
@Command(name = "rank", hidden = true, description = "One rank of a run with processes.")
public final class RankCommand implements Callable<Integer> {

    static final RankFile<RankReport> REPORT =
            new RankFile<>("WEFT_REPORT", "report", RankReport.class, Integer.MAX_VALUE);

    /** What has been measured so far, if there is a viewer. */
    static final RankFile<RankReport> LIVE =
            new RankFile<>("WEFT_LIVE", "live", RankReport.class, Integer.MAX_VALUE);

    @Mixin RunOptions options;

    @Override
    public Integer call() throws IOException {
        if (!REPORT.isAskedFor()) {
            throw new UsageException("'weft rank' is started by 'weft run --launcher processes'");
        }
        ExecutionSpec execution = options.executionSpec();
        RoundListener listener = LIVE.isAskedFor() ? (rank, soFar) -> LIVE.tell(soFar) : null;
        try (Arena arena = Arena.ofShared();
                World world = World.joined()) {
            Inputs inputs = options.open(execution, arena);
            RankReport report = world.call(fabric -> run(fabric, inputs, listener)).getFirst();
            REPORT.write(report);
        }
        return 0;
    }

    private static RankReport run(Fabric fabric, Inputs inputs, RoundListener listener)
            throws IOException {
        Progress progress = ProgressFile.ofRank(fabric.rank());
        return new RankRun(inputs, progress, listener).run(fabric);
    }
}
