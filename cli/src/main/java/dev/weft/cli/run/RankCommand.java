package dev.weft.cli.run;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.fabric.World;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** One rank of a run with processes; started by {@link ProcessLauncher}, not by people. */
@Command(name = "rank", hidden = true, description = "One rank of a run with processes.")
public final class RankCommand implements Callable<Integer> {

    /** Environment variable: where the rank leaves its report. */
    static final String REPORT = "WEFT_REPORT";

    @Mixin RunOptions options;

    @Override
    public Integer call() throws IOException {
        String report = System.getenv(REPORT);
        if (report == null) {
            throw new UsageException("'weft rank' is started by 'weft run --launcher processes'");
        }
        ExecutionSpec execution = options.execution.spec();
        try (Arena arena = Arena.ofShared();
                World world = World.joined()) {
            RunOptions.Inputs inputs = options.open(arena);
            world.call(
                            fabric ->
                                    new RankRun(
                                                    inputs,
                                                    execution,
                                                    ProgressFile.ofRank(fabric.rank()),
                                                    LiveFiles.listener())
                                            .run(fabric))
                    .getFirst()
                    .write(Path.of(report));
        }
        return 0;
    }
}
