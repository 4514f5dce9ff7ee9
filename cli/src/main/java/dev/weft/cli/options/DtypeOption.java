package dev.weft.cli.options;

import dev.weft.tensor.DType;
import picocli.CommandLine.Option;

/** The type of the inputs, if it is the same for both. */
public final class DtypeOption {

    @Option(
            names = "--dtype",
            converter = TypeName.class,
            paramLabel = "TYPE",
            description =
                    "Type of the inputs: fp16, bf16 or fp32, with run also fp8; other names such"
                            + " as bfloat16 are known; inputs from files are converted to it"
                            + " (default: fp16, or that of the files; bf16 in ring, fgcc, gather"
                            + " and helion).")
    String given;

    private final DType otherwise;

    /** With a command's default. */
    public DtypeOption(DType otherwise) {
        this.otherwise = otherwise;
    }

    boolean isGiven() {
        return given != null;
    }

    String label() {
        return given == null ? otherwise.label() : given;
    }

    public DType type() {
        return OptionValues.type("--dtype", label());
    }
}
