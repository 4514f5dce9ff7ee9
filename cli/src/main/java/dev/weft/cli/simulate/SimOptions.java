package dev.weft.cli.simulate;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.DtypeOption;
import dev.weft.cli.options.LowerCase;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RhsOption;
import dev.weft.cli.options.TypeName;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;

/** The options that sweep and plan share: the machine, and what does not vary. */
final class SimOptions {

    @Option(
            names = {"-v", "--machine", "--soc-version"},
            paramLabel = "NAME|FILE",
            description =
                    "The machine: a name, for example Ascend910B1, here (what ./weft calibrate"
                            + " measured), or a model's .json.")
    String socVersion;

    @Option(
            names = "--op",
            converter = LowerCase.class,
            paramLabel = "NAME",
            description =
                    "allgather-matmul, or matmul-reduce-scatter or matmul-allreduce,"
                            + " with K cut evenly (default: ${DEFAULT-VALUE}).")
    String op = ProblemSpec.GATHER;

    @Mixin DtypeOption dtype = new DtypeOption(DType.FP16);

    @Option(
            names = "--out-dtype",
            converter = TypeName.class,
            paramLabel = "TYPE",
            defaultValue = "fp32",
            description = "Type of C (default: ${DEFAULT-VALUE}).")
    String outDtype;

    @Option(names = "--quiet", description = "Print only errors.")
    boolean quiet;

    String checkedOp() {
        return OptionValues.oneOf(
                "--op", op, ProblemSpec.GATHER, ProblemSpec.SCATTER, ProblemSpec.ALL);
    }

    /** Whether products are summed over ranks. */
    boolean isSummed() {
        return !checkedOp().equals(ProblemSpec.GATHER);
    }

    /** Refuses {@code --rhs} if every rank has rows of B. */
    boolean columnSharded(RhsOption rhs, ParseResult given) {
        if (isSummed() && given.hasMatchedOption("--rhs")) {
            throw new UsageException(
                    "--rhs with --op %s: expected none, as it is only for --op %s",
                    op, ProblemSpec.GATHER);
        }
        return !isSummed() && rhs.columnSharded();
    }

    Machine machine() {
        SimRules.requireMachine("a simulation", socVersion);
        return SimRules.machine(socVersion);
    }

    DType aType() {
        return dtype.type();
    }

    DType outType() {
        return OptionValues.type("--out-dtype", outDtype);
    }
}
