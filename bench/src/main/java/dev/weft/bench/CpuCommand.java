package dev.weft.bench;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.JsonTarget;
import dev.weft.cli.console.Version;
import dev.weft.cli.data.CommandFiles;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code weft bench cpu}: runs the cases one after the other and writes the record. */
@Command(
        name = "cpu",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false,
        description =
                "Weft's CPU engine beside OpenBLAS, MPI, NumPy and PyTorch. They take turns, so"
                        + " that a noisy machine disturbs all alike; what is not installed is"
                        + " skipped. Leave the machine alone meanwhile.",
        footer = {
            "",
            "Examples:",
            "  ./weft bench cpu --quick                     does it work here? (not how fast)",
            "  ./weft bench cpu --json bench.json           everything, for the record",
            "  ./weft bench cpu --only product,fused --cores 4",
            "",
            "Exit codes: 0 measured, 1 failed or a wrong product, 2 wrong usage."
        })
final class CpuCommand implements Callable<Integer> {

    private static final double BUSY = 0.5;

    @Spec CommandSpec spec;

    @Option(
            names = "--quick",
            description = "Small problems and few rounds: shows that it works, not how fast.")
    boolean quick;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Write the record there; - is standard output (docs/bench-record.md).")
    String json;

    @Option(
            names = "--only",
            paramLabel = "ITEMS",
            split = ",",
            description = "Only these, separated by commas: ${COMPLETION-CANDIDATES}.",
            completionCandidates = Items.class)
    List<String> only;

    @Option(
            names = "--cores",
            paramLabel = "N",
            description = "Cores to use at most (default: all).")
    Integer cores;

    @Option(
            names = "--plots",
            paramLabel = "FOLDER",
            description = "Draw the item ranks there, as ranks.svg and chunks.svg.")
    Path plots;

    /** The words for {@code --only}, for help and completion. */
    static final class Items extends ArrayList<String> {

        private static final long serialVersionUID = 1L;

        Items() {
            super(BenchCases.items());
        }
    }

    @Override
    public Integer call() throws IOException, InterruptedException {
        Set<String> items = checkedItems();
        int available = Runtime.getRuntime().availableProcessors();
        int used = checkedCores(available);
        checkPlots();
        PrintWriter out = spec.commandLine().getOut();
        JsonTarget target = new JsonTarget(json, out);
        checkOutputs();
        Console console = new Console(out, target.toStandardOutput());
        BenchTable table = new BenchTable(console::print);
        String startedAt = Instant.now().truncatedTo(ChronoUnit.SECONDS).toString();
        noteLoad(table, console);
        table.head();
        try (BenchFolder folder = BenchFolder.create()) {
            BenchSettings settings = new BenchSettings(quick, used, folder.path());
            for (BenchCase each : BenchCases.all(plots)) {
                if (items.contains(each.item())) {
                    each.run(settings, table);
                }
            }
        }
        table.summary(quick);
        BenchRecord bench =
                new BenchRecord(
                        Version.number(),
                        Runtime.version().toString(),
                        machine(available, used),
                        quick,
                        startedAt,
                        table.rows(),
                        table.skipped(),
                        table.figures());
        target.write(bench::write);
        return 0;
    }

    /**
     * Others at work make a bench worthless, and a pinned peer suffers more from them than Weft.
     */
    private static void noteLoad(BenchTable table, Console console) {
        double load = ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
        // Negative where the system does not tell.
        if (load >= 0) {
            table.machine("loadAverageBefore", load);
        }
        if (load > BUSY) {
            String form = "The machine was busy just now: a load average of %.1f.";
            console.print(String.format(Locale.ROOT, form, load));
        }
    }

    private Set<String> checkedItems() {
        if (only == null) {
            return Set.copyOf(BenchCases.items());
        }
        for (String item : only) {
            if (!BenchCases.items().contains(item)) {
                throw new ParameterException(
                        spec.commandLine(),
                        "--only '"
                                + item
                                + "': expected some of "
                                + String.join(", ", BenchCases.items()));
            }
        }
        return new LinkedHashSet<>(only);
    }

    private int checkedCores(int available) {
        if (cores != null && (cores < 1 || cores > available)) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--cores " + cores + ": expected 1 to " + available + ", the cores there are");
        }
        return cores == null ? available : cores;
    }

    private void checkOutputs() {
        CommandFiles files = new CommandFiles().writes("--json", json);
        if (plots != null) {
            RanksCase.PLOTS.forEach(
                    name -> files.writes("--plots", plots.resolve(name).toString()));
        }
    }

    private void checkPlots() {
        if (plots != null && !(Files.isDirectory(plots) && Files.isWritable(plots))) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--plots " + plots + ": expected a folder that exists and can be written to");
        }
    }

    private static BenchRecord.Machine machine(int available, int used) throws IOException {
        return new BenchRecord.Machine(
                System.getProperty("os.name"),
                System.getProperty("os.arch"),
                Processor.name(),
                available,
                used,
                WeftProduct.engine().name());
    }
}
