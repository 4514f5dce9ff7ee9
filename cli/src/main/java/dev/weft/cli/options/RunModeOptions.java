package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.sim.Machines;
import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;

/** Where a command of the source systems runs: on CPUs, on GPUs, or on a model of a machine. */
public final class RunModeOptions {

    /** Options that say how real ranks are started or multiply. */
    private static final List<String> OF_REAL_RANKS =
            List.of(
                    "--launcher",
                    "--hostfile",
                    "--mpi-args",
                    "--peers",
                    "--engine",
                    "--watch",
                    "--npy",
                    "--c",
                    "--block-sizes",
                    "--num-warps",
                    "--num-stages");

    @Option(
            names = {"-r", "--run-mode"},
            converter = LowerCase.class,
            paramLabel = "MODE",
            description =
                    "Where: auto, cpu, cuda or sim; cuda is NVIDIA GPUs, rank r on number r modulo"
                            + " their count; sim prices the plan on the machine of -v; auto is cpu"
                            + " (default: ${DEFAULT-VALUE}).")
    String mode = "auto";

    @Option(
            names = {"-v", "--machine", "--soc-version"},
            paramLabel = "NAME|FILE",
            description =
                    "The machine to simulate: a name, for example trn2, here (what ./weft calibrate"
                            + " measured), or a model's .json. With other modes than sim, what it"
                            + " would take is told beside what was measured.")
    public String machine;

    public boolean cuda() {
        return mode.equals("cuda");
    }

    public boolean simulated() {
        return mode.equals("sim");
    }

    /** Refuses options that do not go together. */
    public void check(CommandSpec spec) {
        OptionValues.oneOf("--run-mode", mode, "auto", "cpu", "cuda", "sim");
        if (simulated()) {
            checkSimulated(machine, spec.commandLine().getParseResult());
        }
    }

    /** Refuses to continue without a machine, and lists the available ones. */
    public static void requireMachine(String what, String machine) {
        if (machine == null) {
            throw new UsageException(
                    "%s needs -v: expected one of %s, here, or a model's .json",
                    what, String.join(", ", Machines.names()));
        }
    }

    /** Refuses what a simulation lacks or cannot use. */
    public static void checkSimulated(String machine, ParseResult given) {
        requireMachine("--run-mode sim", machine);
        if (MpiEnvironment.current().launched()) {
            throw new UsageException(
                    "--run-mode sim simulates all ranks in one process: start it without mpirun");
        }
        for (String option : OF_REAL_RANKS) {
            if (given.hasMatchedOption(option)) {
                throw new UsageException(
                        option + " is for real ranks: --run-mode sim simulates them, give none");
            }
        }
    }
}
