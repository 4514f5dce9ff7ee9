package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRecord;
import dev.weft.bench.measure.DeviceBench;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.BenchFolder;
import dev.weft.cli.console.Version;
import dev.weft.gemm.Gemms;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalInt;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code weft bench cpu}: runs the cases one after the other and writes the record. */
@Command(
        name = "cpu",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false,
        description =
                "Weft's CPU engine beside OpenBLAS, MKL, MPI, NumPy, PyTorch, llama.cpp and ONNX"
                        + " Runtime. They take turns, so that a noisy machine disturbs all alike;"
                        + " what is not installed is skipped. Leave the machine alone meanwhile.",
        footer = {
            "",
            "Examples:",
            "  ./weft bench cpu --quick                     does it work here? (not how fast)",
            "  ./weft bench cpu --json bench.json           everything, for the record",
            "  ./weft bench cpu --only product,fused --cores 4",
            "",
            "Exit codes: 0 measured, 1 failed or a wrong product, 2 wrong usage."
        })
public final class CpuCommand extends DeviceBench {

    private static final double BUSY = 0.5;

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

    /** The words for {@code --only}, for help and completion. */
    static final class Items extends ArrayList<String> {

        private static final long serialVersionUID = 1L;

        Items() {
            super(items());
        }
    }

    /** All cases, in the order in which they run. */
    private static List<BenchCase> cases() {
        return List.of(
                new ProductCase(),
                new MpiCase(MpiCase.FUSED),
                new GatherCase(),
                new OverlapCase(),
                new RowsCase(),
                new BlocksCase(),
                new MpiCase(MpiCase.REDUCE),
                new ExpertsCase(),
                new LabCase(),
                new StartupCase());
    }

    private static List<String> items() {
        return cases().stream().map(BenchCase::item).toList();
    }

    @Override
    public Integer call() throws IOException, InterruptedException {
        List<String> items = checkedItems(only, items());
        int available = Runtime.getRuntime().availableProcessors();
        int used = checkedCores(available);
        open();
        BenchTable table = new BenchTable(quick, console::print);
        noteLoad(table);
        table.head();
        try (BenchFolder folder = BenchFolder.create()) {
            BenchCase.Settings settings = new BenchCase.Settings(quick, used, folder.path());
            for (BenchCase each : cases()) {
                if (items.contains(each.item())) {
                    run(each, settings, table);
                }
            }
        }
        table.summary();
        write(machine(used, table.figures()), OptionalInt.empty(), table.rows(), table.skipped());
        return 0;
    }

    private static void run(BenchCase each, BenchCase.Settings settings, BenchTable table)
            throws IOException, InterruptedException {
        try {
            each.run(settings, table);
        } catch (SkippedException e) {
            table.skipped(each.item(), e.getMessage());
        }
    }

    /**
     * Others at work make a bench worthless, and a pinned peer suffers more from them than Weft.
     */
    private void noteLoad(BenchTable table) {
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

    private int checkedCores(int available) {
        if (cores != null && (cores < 1 || cores > available)) {
            throw refused(
                    "--cores %d: expected 1 to %d, the cores there are"
                            .formatted(cores, available));
        }
        return cores == null ? available : cores;
    }

    private static Map<String, Object> machine(int used, Map<String, Double> figures)
            throws IOException {
        Map<String, Object> machine = BenchRecord.host();
        machine.put("coresUsed", used);
        machine.put("engine", Gemms.portable().name());
        machine.put("figures", figures);
        return machine;
    }
}
