package dev.weft.compat.command;

import dev.weft.cli.options.LowerCase;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.simulate.SimRules;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** Where a command of the source systems runs: on CPUs, on GPUs, or on a model of a machine. */
public final class RunModeOptions {

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
            SimRules.checkSimulated(machine, spec.commandLine().getParseResult());
        }
    }
}
