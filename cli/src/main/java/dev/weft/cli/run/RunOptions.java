package dev.weft.cli.run;

import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.BlockOperands;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.Operands;
import dev.weft.cli.data.QuantizedOperands;
import dev.weft.cli.data.UserFiles;
import dev.weft.cli.options.ExecutionOptions;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.ReportOptions;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.simulate.SimRules;
import dev.weft.sim.Machine;
import dev.weft.tensor.QuantizedMatrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;

/** All options of run; each rank's process parses them again. */
final class RunOptions {

    @Mixin ProblemOptions problem;

    @Mixin ExecutionOptions execution;

    @Option(
            names = "--a",
            paramLabel = "FILE",
            description =
                    "A from a file (.npy, FILE.safetensors:TENSOR, FILE.gguf:TENSOR, or raw"
                            + " elements) instead of generated data; needs --b.")
    String a;

    @Option(names = "--b", paramLabel = "FILE", description = "B from a file, likewise.")
    String b;

    @Option(
            names = "--c",
            paramLabel = "FILE",
            description =
                    "Write the whole C to this file once it is verified (formats as for"
                            + " --a); several groups go one below the other. Without it, each"
                            + " rank's part of C is in output_rank<r>.bin of --data-dir.")
    String c;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description =
                    "Write the run record (schema weft.run/1) to this file; - is standard"
                            + " output.")
    String json;

    @Mixin ReportOptions reports;

    @Option(
            names = "--label",
            paramLabel = "TEXT",
            description = "A name for the run, kept in its record and shown in reports.")
    String label;

    @Option(
            names = "--watch",
            description =
                    "Serve a live page on loopback while it runs: progress, and on the CPU medians"
                            + " so far and the last timeline; the address is printed.")
    boolean watch;

    @Option(names = "--ascii", description = "Draw the timeline under the summary in plain ASCII.")
    boolean ascii;

    @Option(
            names = "--verify",
            negatable = true,
            description =
                    "With -r sim: also run the plan on this machine's CPU and verify its"
                            + " product; times stay predicted (default: if that takes only"
                            + " seconds). Real runs always verify.")
    Boolean verify;

    @Option(
            names = "--golden",
            description =
                    "Compute golden.bin in float64 even if that takes over a minute"
                            + " (default: print how long it would take).")
    boolean golden;

    @Option(
            names = "--slow",
            paramLabel = "RANK=FACTOR",
            split = ",",
            description = "With -r sim: ranks that are slower by FACTOR, for example 3=1.5.")
    Map<Integer, Double> slow = new LinkedHashMap<>();

    @Option(
            names = "--explain",
            description =
                    "Print the plans that auto chose from, with their predicted and, where they"
                            + " were tried, measured times.")
    boolean explain;

    @Option(names = "--quiet", description = "Print only errors.")
    boolean quiet;

    /** Options that only a gather has, not sums over parts of K. */
    private static final List<String> OF_GATHERS =
            List.of(
                    "--base-m",
                    "--base-n",
                    "--comm-blocks",
                    "--chunk-rule",
                    "--strict",
                    "--keep-gathered",
                    "--rhs");

    /** Refuses options that do not apply to what is computed. */
    void check(ParseResult given) {
        if (c != null && execution.hasHostPeers()) {
            throw new UsageException(
                    "--c %s with --peers host, where only rank 0 computes its part of C:"
                            + " expected no --c",
                    c);
        }
        if (!problem.isSummed()) {
            return;
        }
        for (String option : OF_GATHERS) {
            if (given.hasMatchedOption(option)) {
                throw new UsageException(
                        "%s with --op %s: expected none, as it is only for --op %s",
                        option, problem.op, ProblemSpec.GATHER);
            }
        }
    }

    ExecutionSpec executionSpec() {
        if (isOfTheAscendExample()) {
            problem.replicateB();
        }
        return execution.spec(problem.op);
    }

    /** Whether the run is on the Ascend example's NPUs, or on models of them. */
    private boolean isOfTheAscendExample() {
        boolean modelled = isSimulated() && execution.socVersion != null;
        return execution.runMode.equals("npu")
                || modelled
                        && SimRules.machine(execution.socVersion).consumption()
                                == Machine.Consumption.BY_SOURCE;
    }

    /** The files that are read and written besides the data folder. */
    CommandFiles files() {
        CommandFiles files =
                new CommandFiles()
                        .reads("--a", a)
                        .reads("--b", b)
                        .reads("--hostfile", execution.launch.hostfile);
        return files.readsMachine(execution.socVersion)
                .writes("--c", c == null ? null : UserFiles.path(c).toString())
                .writes("--json", json)
                .writes(reports);
    }

    boolean isSimulated() {
        return "sim".equals(execution.runMode);
    }

    /** The title of the run's page. */
    String title() {
        return label == null ? "weft run" : label;
    }

    /**
     * The inputs of a problem.
     *
     * @param files the user's own; null where they are generated
     */
    record Inputs(RunRequest request, Operands operands, DataFolder folder, UserFiles files) {

        boolean fromFiles() {
            return files != null;
        }

        ProblemSpec problem() {
            return request.problem();
        }
    }

    boolean fromFiles() {
        if ((a == null) != (b == null)) {
            throw new UsageException(
                    (a == null ? "--b " + b : "--a " + a)
                            + " alone: expected --a and --b together");
        }
        return a != null;
    }

    /** The inputs, not read yet: generated ones may still have to be written. */
    Inputs open(ExecutionSpec how, Arena arena) {
        try {
            UserFiles files = fromFiles() ? UserFiles.open(problem, a, b) : null;
            ProblemSpec spec = files == null ? problem.spec() : files.spec();
            DataFolder folder = new DataFolder(problem.dataDir, spec);
            Operands plain = files == null ? folder.open(arena) : files.open(arena);
            Operands operands = plain;
            if (spec.fp8() != null) {
                operands = new QuantizedOperands(plain, spec, arena);
            } else if (spec.blocks() != null) {
                Supplier<QuantizedMatrix> blocks = files == null ? null : files.blocks(arena);
                operands = new BlockOperands(plain, spec, blocks, arena);
            }
            return new Inputs(new RunRequest(spec, how), operands, folder, files);
        } catch (IOException e) {
            throw new RunFailedException("cannot read the inputs: " + e.getMessage());
        }
    }
}
