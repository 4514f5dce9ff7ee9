package dev.weft.cli;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.LowerCase;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RhsOption;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.sim.Machines;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Parameters;

/** {@code weft completion}: the script that teaches a shell Weft's options and their values. */
@Command(
        name = "completion",
        description = "Prints the completion script for a shell.",
        footer = {
            "",
            "Examples:",
            "  source <(./weft completion)              bash and zsh",
            "  ./weft completion fish | source"
        })
final class CompletionCommand extends WeftCommand {

    private static final List<String> TYPES = DType.UNSCALED.stream().map(DType::label).toList();

    @Parameters(
            arity = "0..1",
            paramLabel = "SHELL",
            converter = LowerCase.class,
            description = "bash, zsh or fish (default: bash; zsh reads the same script).")
    String shell = "bash";

    @Override
    public Integer call() {
        if (!List.of("bash", "zsh", "fish").contains(shell)) {
            throw new UsageException("shell '%s': expected one of bash, zsh, fish", shell);
        }
        CommandLine all = Main.commandLine();
        all.getSubcommands().values().forEach(command -> addValues(command.getCommandSpec()));
        out().print(shell.equals("fish") ? fish(all) : AutoComplete.bash("weft", all));
        out().flush();
        return 0;
    }

    /** What may follow an option, by its longest name. */
    private static Map<String, List<String>> values() {
        return Map.ofEntries(
                Map.entry("--algorithm", algorithms()),
                Map.entry(
                        "--op", List.of(ProblemSpec.GATHER, ProblemSpec.SCATTER, ProblemSpec.ALL)),
                Map.entry("--run-mode", List.of("auto", "cpu", "cuda", "npu", "sim")),
                Map.entry("--peers", List.of("device", "host")),
                Map.entry(
                        "--order",
                        OptionValues.ORDERS.stream().map(Reduction.Order::label).toList()),
                Map.entry("--launcher", List.of("threads", "processes", "mpi")),
                Map.entry(
                        "--engine",
                        Stream.concat(Gemms.NAMES.stream(), Stream.of("gated", "cublas")).toList()),
                Map.entry("--chunk-rule", List.of("weft", "ascend")),
                Map.entry("--rhs", List.of(RhsOption.label(true), RhsOption.label(false))),
                Map.entry("--data", List.of("normal", "seed19")),
                Map.entry("--scales", Arrays.stream(Scaling.values()).map(Scaling::label).toList()),
                Map.entry("--dtype", Stream.concat(TYPES.stream(), Stream.of("fp8")).toList()),
                Map.entry("--a-dtype", TYPES),
                Map.entry(
                        "--b-dtype",
                        Stream.concat(
                                        Arrays.stream(DType.values()).map(DType::label),
                                        BlockType.MULTIPLIED.stream().map(BlockType::label))
                                .toList()),
                Map.entry("--out-dtype", TYPES),
                Map.entry(
                        "--epilogue",
                        List.of(
                                "bias",
                                "relu",
                                "gelu",
                                "gelu-tanh",
                                "silu",
                                "swiglu",
                                "residual",
                                "rmsnorm",
                                "layernorm")),
                Map.entry(
                        "--soc-version",
                        Stream.concat(Machines.names().stream(), Stream.of(Machines.HERE))
                                .toList()));
    }

    private static List<String> algorithms() {
        return Stream.concat(
                        Arrays.stream(Algorithm.values()).map(Algorithm::label),
                        Arrays.stream(Reduction.values()).map(Reduction::label))
                .distinct()
                .toList();
    }

    private static void addValues(CommandSpec command) {
        Map<String, List<String>> values = values();
        for (OptionSpec option : List.copyOf(command.options())) {
            List<String> known = values.get(option.longestName());
            if (known != null) {
                command.remove(option);
                // Picocli names its lists by the label, which several options share.
                command.add(
                        OptionSpec.builder(option)
                                .completionCandidates(known)
                                .paramLabel(option.longestName().substring(2))
                                .build());
            }
        }
    }

    /** Picocli writes none for fish. */
    private static String fish(CommandLine all) {
        StringBuilder script = new StringBuilder("complete -c weft -e\n");
        all.getSubcommands()
                .forEach(
                        (name, command) -> {
                            CommandSpec spec = command.getCommandSpec();
                            if (!spec.usageMessage().hidden()) {
                                line(
                                        script,
                                        "__fish_use_subcommand",
                                        "-f -a " + name,
                                        spec.usageMessage().description());
                                spec.options().forEach(option -> line(script, name, option));
                            }
                        });
        return script.toString();
    }

    private static void line(StringBuilder script, String command, OptionSpec option) {
        StringBuilder what = new StringBuilder();
        for (String name : option.names()) {
            what.append(name.startsWith("--") ? " -l " : " -s ").append(name.replaceAll("^-+", ""));
        }
        if (option.completionCandidates() != null) {
            what.append(" -x -a '")
                    .append(String.join(" ", option.completionCandidates()))
                    .append('\'');
        } else if (option.arity().max() > 0) {
            what.append(" -r");
        }
        line(
                script,
                "__fish_seen_subcommand_from " + command,
                what.toString().strip(),
                option.description());
    }

    private static void line(
            StringBuilder script, String when, String what, String... description) {
        String text = description.length == 0 ? "" : description[0].split("[.;:(]", 2)[0].strip();
        script.append(
                "complete -c weft -n '%s' %s -d '%s'\n"
                        .formatted(when, what, text.replace("'", "\\'")));
    }
}
