package dev.weft.cli.data;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.ProblemSpec;
import java.io.IOException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft gen-data}: inputs and golden, without running anything. */
@Command(
        name = "gen-data",
        description = {
            "Writes pe_<r>_a.bin and pe_<r>_b.bin for every rank and golden.bin (fp32, computed in"
                    + " float64) into --data-dir.",
            "--data seed19 is like the Ascend example's: B is the same on all ranks, and the"
                    + " integers have its distribution, not NumPy's exact values."
        },
        footer = {
            "",
            "Examples:",
            "  ./weft gen-data -n 4 --gm 1024 --gk 512 --gn 256 --data-dir data",
            "  ./weft gen-data --data seed19"
        })
public final class GenDataCommand extends WeftCommand {

    @Mixin ProblemOptions options;

    @Option(names = "--quiet", description = "Print only errors.")
    boolean quiet;

    @Override
    public Integer call() throws IOException {
        ProblemSpec problem = options.spec();
        Console console = console(quiet);
        DataFolder folder = new DataFolder(options.dataDir, problem);
        folder.refuseOtherInputs(true);
        if (folder.lacksInputs(true)) {
            ProblemRoom.of(problem, null)
                    .toGenerate(true)
                    .check(options.dataDir, folder.ownBytes(), console);
        }
        boolean fresh;
        try (FolderLock lock = new FolderLock(options.dataDir)) {
            lock.takeToWrite();
            fresh = folder.generate(true, Progress.forTerminal(quiet));
        }
        console.info(
                (fresh ? "Wrote " : "Already there: ")
                        + problem.describe()
                        + ", in "
                        + options.dataDir);
        return 0;
    }
}
