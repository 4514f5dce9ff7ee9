package dev.weft.cli.simulate;

import dev.weft.cli.options.DtypeOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import picocli.CommandLine.Mixin;
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

    @Mixin DtypeOption dtype = new DtypeOption(DType.FP16);

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
        return dtype.type();
    }

    DType outType() {
        return OptionValues.type("--out-dtype", outDtype);
    }
}
