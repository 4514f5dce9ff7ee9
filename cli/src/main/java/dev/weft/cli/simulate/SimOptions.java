package dev.weft.cli.simulate;

import dev.weft.cli.options.OptionValues;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import picocli.CommandLine.Option;

/** The options that sweep and plan share: the machine, and what does not vary. */
final class SimOptions {

    @Option(
            names = {"-v", "--soc-version"},
            paramLabel = "NAME|FILE",
            required = true,
            description =
                    "The machine: a name, for example Ascend910B1, here (what ./weft calibrate"
                            + " measured), or a model's .json.")
    String socVersion;

    @Option(
            names = "--dtype",
            paramLabel = "TYPE",
            defaultValue = "fp16",
            description = "Type of A: fp16, bf16 or fp32 (default: ${DEFAULT-VALUE}).")
    String dtype;

    @Option(
            names = "--out-dtype",
            paramLabel = "TYPE",
            defaultValue = "fp32",
            description = "Type of C (default: ${DEFAULT-VALUE}).")
    String outDtype;

    @Option(names = "--quiet", description = "Print nothing but errors.")
    boolean quiet;

    Machine machine() {
        return SimRules.machine(socVersion);
    }

    DType aType() {
        return OptionValues.type("--dtype", dtype);
    }

    DType outType() {
        return OptionValues.type("--out-dtype", outDtype);
    }

    /** Whether every rank has columns of B of its own. */
    static boolean columnSharded(String rhs) {
        return OptionValues.oneOf("--rhs", rhs, "replicated", "column-sharded")
                .equals("column-sharded");
    }
}
