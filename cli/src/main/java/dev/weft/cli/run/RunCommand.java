package dev.weft.cli.run;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.launch.MpiCommandLine;
import dev.weft.cli.launch.MpiStart;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.files.TemporaryFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code weft run}: inputs, ranks, measurement, verification, summary. */
@Command(
        name = "run",
        description =
                "Runs one problem on all ranks, measures it overlapped and not, verifies it, and"
                        + " prints a summary.",
        footer = {
            "",
            "Examples:",
            "  ./weft run",
            "  ./weft run -n 4 --gm 4096 --gk 4096 --gn 4096 --dtype bf16",
            "  ./weft run -n 4 --shards 400,0,599,1 --algorithm ring --launcher processes",
            "  ./weft run --a x.npy --b model.safetensors:layer.weight --transpose-b --json r.json",
            "  ./weft run -n 4 --gm 4096 --gk 4096 --gn 64 --report run.html --trace trace.json",
            "  ./weft run --iterations 2000 --watch",
            "  ./weft run --op matmul-reduce-scatter -n 4 --gm 2048 --gk 4096 --gn 1024",
            "  ./weft run --op matmul-allreduce -n 3 --k-parts 1000,0,24 --order by-rank",
            "  ./weft run -n 4 --launcher mpi --hostfile hosts.txt --algorithm ring",
            "  mpirun -n 4 ./weft run --gm 4096 --gk 4096 --gn 4096",
            "  ./weft run -r cuda -n 4 --gm 8192 --gk 4096 --gn 4096 --dtype bf16",
            "  ./weft run -n 4 --gm 4096 --gk 4096 --gn 64 --explain",
            "  ./weft run -r cuda --peers host -n 8 --gm 8192 --gk 4096 --gn 14336",
            "  ./weft run -r sim -v Ascend910B1 -n 8 --gm 16384 --gk 4096 --gn 4096",
            "  ./weft run -r sim -v my-machine.json -n 8 --slow 3=1.5 --explain --verify",
            "",
            "Exit codes: 0 verified (or simulated), 1 failed, 2 wrong usage or something"
                    + " is missing."
        })
public final class RunCommand extends WeftCommand {

    @Mixin RunOptions options;

    /** Headings of the help text, by the option that each precedes. */
    public static final Map<String, String> HELP_SECTIONS =
            Map.of(
                    "--ranks", "What is computed",
                    "--run-mode", "Where and how",
                    "--base-m", "Workers and chunks",
                    "--warmup", "Rounds and results",
                    "--a", "Your own matrices",
                    "--json", "Records, reports and explanations");

    @Override
    public Integer call() throws IOException {
        if (RankReport.FILE.isAskedFor()) {
            return asRank();
        }
        MpiEnvironment mpi = MpiEnvironment.current();
        RunSteps steps;
        try {
            steps = checked();
            if (options.isSimulated()) {
                return new SimRun(steps).call();
            }
            if (steps.execution().place().launcher() == Launcher.MPI) {
                checkMpi(mpi);
            }
        } catch (UsageException e) {
            // All ranks have the same command line: only one of them says what is wrong with it.
            if (mpi.rank().orElse(0) > 0) {
                return ExitCode.USAGE;
            }
            throw e;
        }
        boolean starts = steps.execution().place().launcher() == Launcher.MPI && !mpi.launched();
        return starts ? startMpi(steps) : new RealRun(steps).call();
    }

    /** This process is a rank that the command has started. */
    private int asRank() throws IOException {
        ExecutionSpec execution = options.executionSpec();
        RoundListener listener =
                RankReport.LIVE.isAskedFor() ? (rank, soFar) -> RankReport.LIVE.tell(soFar) : null;
        try (Arena arena = Arena.ofShared();
                World world = World.joined()) {
            Inputs inputs = options.open(execution, arena);
            RankReport.FILE.write(
                    world.call(
                                    fabric ->
                                            new RankRun(
                                                            inputs,
                                                            ProgressFile.ofRank(fabric.rank()),
                                                            listener)
                                                    .run(fabric))
                            .getFirst());
        }
        return 0;
    }

    /** Refuses, once the arguments are parsed, what a run would refuse before it computes. */
    public void check() {
        checked().outputs();
        if (!options.fromFiles()) {
            options.problem.spec();
        }
    }

    private RunSteps checked() {
        options.check(spec.commandLine().getParseResult());
        if (options.isSimulated()) {
            SimRun.check(options, spec.commandLine().getParseResult());
        } else {
            SimRun.checkReal(options);
        }
        return new RunSteps(options, options.executionSpec(), arguments(), out(), err());
    }

    private int startMpi(RunSteps steps) throws IOException {
        options.files().check().checkOutputs(options.problem.dataDir);
        TemporaryFiles.watch(options.problem.dataDir);
        int ranks = options.problem.ranks;
        MpiCommandLine command =
                MpiCommandLine.ofWeft(
                        options.execution.launch.hostfile,
                        options.execution.launch.mpiArgs,
                        ranks,
                        arguments());
        return new MpiStart(command, ranks, steps.execution().deadline(), out()).run();
    }

    /** The launcher of MPI ranks decides how many there are; -n may only confirm it. */
    private void checkMpi(MpiEnvironment mpi) {
        boolean given = spec.commandLine().getParseResult().hasMatchedOption("--n-ranks");
        if (mpi.size().isPresent() && given && options.problem.ranks != mpi.size().getAsInt()) {
            throw new UsageException(
                    "-n %s, but MPI has started %s ranks: expected the same number, or no -n",
                    options.problem.ranks, mpi.size().getAsInt());
        }
        if (mpi.size().isPresent()) {
            options.problem.ranks = mpi.size().getAsInt();
        }
        if (!options.fromFiles()) {
            options.problem.spec();
        }
    }
}
