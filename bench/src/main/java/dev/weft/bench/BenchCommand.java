package dev.weft.bench;

import dev.weft.bench.cpu.AscendCommand;
import dev.weft.bench.cpu.CpuCommand;
import dev.weft.bench.cpu.GatherRanksCommand;
import dev.weft.bench.cpu.ReduceRankCommand;
import dev.weft.bench.gpu.GpuCommand;
import dev.weft.cli.AddOnCommand;
import dev.weft.cli.console.Version;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code weft bench}: the parent of the benches, one per device. */
@Command(
        name = "bench",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        description = "Weft beside what a user has today, interleaved in one run.",
        subcommands = {
            CpuCommand.class,
            GpuCommand.class,
            AscendCommand.class,
            GatherRanksCommand.class,
            ReduceRankCommand.class
        },
        footer = {
            "",
            "Examples:",
            "  ./weft bench cpu --quick",
            "  ./weft bench gpu --quick",
            "  ./weft bench ascend --only predicted"
        })
public final class BenchCommand implements AddOnCommand, Runnable {

    @Spec private CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no bench given: try cpu, gpu or ascend");
    }
}
