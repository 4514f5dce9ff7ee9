package dev.weft.cli.options;

import dev.weft.tensor.DType;
import picocli.CommandLine.Option;

/** The type of the inputs, where they have the same. */
public final class DtypeOption {

    @Option(
            names = "--dtype",
            converter = LowerCase.class,
            paramLabel = "TYPE",
            description =
                    "Type of the inputs: fp16, bf16 or fp32 (default: ${DEFAULT-VALUE}); with run also"
                            + " fp8.")
    String label;

    /** With a command's default. */
    public DtypeOption(DType otherwise) {
        this.label = otherwise.label();
    }

    public DType type() {
        return OptionValues.type("--dtype", label);
    }
}
