package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchRecord;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.DeviceBench;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.peers.BenchFolder;
import dev.weft.bench.peers.ChildCommand;
import dev.weft.cli.console.TextTable;
import dev.weft.cli.console.Version;
import dev.weft.cuda.Gpu;
import dev.weft.report.RunRecord;
import dev.weft.sim.Machine;
import dev.weft.sim.Machines;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * {@code weft bench ascend}: the table that the Ascend example publishes, beside what its model
 * predicts and what the same runs take here. Each run is a {@code weft run} of its own, which
 * verifies its product; one that fails ends the bench.
 */
@Command(
        name = "ascend",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false,
        description =
                "The eight published times of the Ascend example beside those that the model of its"
                        + " machine predicts, and those that the same problems take on this CPU and,"
                        + " where there is one, on the GPU, which all ranks share.",
        footer = {
            "",
            "Examples:",
            "  ./weft bench ascend --only predicted",
            "  ./weft bench ascend --rows 1,2 --only predicted,cpu",
            "  ./weft bench ascend --limit 600 --json ascend.json",
            "",
            "Items: predicted, cpu, gpu. Times are means of the slowest rank, as the example reports"
                    + " them.",
            "Exit codes: 0 measured and verified, 1 failed or a wrong product, 2 wrong usage."
        })
public final class AscendCommand extends DeviceBench {

    private static final List<String> ITEMS = List.of("predicted", "cpu", "gpu");
    private static final String MODEL = "Ascend910B1";

    /** As the example counts them. */
    private static final int WARMUP = 5;

    private static final int ITERATIONS = 10;

    /** A round has four products and a few gathers; verifying takes a few products more. */
    private static final int PRODUCTS_PER_ROUND = 5;

    private static final int MOST_SECONDS = 86_400;

    @Option(
            names = "--only",
            paramLabel = "ITEMS",
            split = ",",
            description = "Only these, separated by commas: predicted, cpu, gpu.")
    List<String> only;

    @Option(
            names = "--rows",
            paramLabel = "NUMBERS",
            split = ",",
            description = "Only these rows, 1 to 8 (default: all; --quick: 1).")
    List<Integer> rows;

    @Option(
            names = "--limit",
            paramLabel = "SECONDS",
            description =
                    "On the CPU, leave out rows that would take longer, going by the rate of the"
                            + " rows before (default: ${DEFAULT-VALUE}).")
    int limitSeconds = 120;

    /** What one row came to; NaN where it was not measured. */
    private record Times(double predictedMs, double cpuMs, double gpuMs) {}

    @Override
    public Integer call() throws IOException, InterruptedException {
        List<String> items = checkedItems(only, ITEMS);
        List<Integer> numbers = checkedRows(rows, AscendRow.ROWS.size(), 1);
        if (limitSeconds < 1 || limitSeconds > MOST_SECONDS) {
            throw refused("--limit " + limitSeconds + ": expected 1 to " + MOST_SECONDS);
        }
        open();
        List<BenchRecord.Skipped> skipped = new ArrayList<>();
        Optional<String> noGpu = items.contains("gpu") ? Gpu.unavailable() : Optional.empty();
        noGpu.ifPresent(
                why ->
                        skipped.add(
                                new BenchRecord.Skipped(
                                        "gpu", why.lines().findFirst().orElse(""))));
        boolean gpu = items.contains("gpu") && noGpu.isEmpty();
        Machine machine = Machines.named(MODEL);
        TextTable table =
                TextTable.of(
                        "row|ranks|M|K|N|published ms|TFLOP/s|predicted ms|off by|CPU ms|GPU ms");
        List<BenchRow> found = new ArrayList<>();
        // Of all ranks together; unknown before the first row.
        double flopsPerSecond = 0;
        try (BenchFolder folder = BenchFolder.create()) {
            for (int number : numbers) {
                AscendRow row = AscendRow.ROWS.get(number - 1);
                boolean cpu = items.contains("cpu");
                double seconds = seconds(row, flopsPerSecond);
                if (cpu && seconds > limitSeconds) {
                    String form = "%s: about %.0f s on this CPU, --limit is %d";
                    String why = text(form, row.describe(), seconds, limitSeconds);
                    skipped.add(new BenchRecord.Skipped("cpu", why));
                    cpu = false;
                }
                Times times =
                        new Times(
                                items.contains("predicted") ? row.predictedMs(machine) : Double.NaN,
                                cpu ? measuredMs(row, "cpu", folder.path()) : Double.NaN,
                                gpu ? measuredMs(row, "cuda", folder.path()) : Double.NaN);
                if (cpu) {
                    flopsPerSecond = row.ranks() * row.flops() / times.cpuMs() * 1e3;
                }
                found.add(benchRow(row, times));
                addTo(table, number, row, times);
            }
        }
        table.lines().forEach(console::print);
        skipped.forEach(one -> console.print("skipped " + one.item() + ": " + one.reason()));
        write(BenchRecord.host(), OptionalInt.of(iterations()), found, skipped);
        return 0;
    }

    private int iterations() {
        return quick ? 2 : ITERATIONS;
    }

    private double seconds(AscendRow row, double flopsPerSecond) {
        int rounds = iterations() + (quick ? 1 : WARMUP);
        return flopsPerSecond == 0
                ? 0
                : PRODUCTS_PER_ROUND * rounds * row.ranks() * row.flops() / flopsPerSecond;
    }

    /** The mean of a call by a run of the example's own settings, which verifies its product. */
    private double measuredMs(AscendRow row, String mode, Path folder)
            throws IOException, InterruptedException {
        String arguments =
                "-r %s -n %d --gm %d --gk %d --gn %d --rhs replicated --chunk-rule ascend --data seed19"
                        .formatted(mode, row.ranks(), row.m(), row.k(), row.n());
        String rounds = " --warmup %d --iterations %d".formatted(quick ? 1 : WARMUP, iterations());
        // Data and golden come on top of what the limit is for.
        Duration limit = Duration.ofSeconds(limitSeconds).plusMinutes(10);
        RunRecord run = ChildCommand.run(folder, limit, arguments + rounds);
        return run.views().pipelined().mean() / 1e3;
    }

    private static BenchRow benchRow(AscendRow row, Times times) {
        Figures figures =
                new Figures()
                        .with("publishedMeanNs", row.publishedMs() * 1e6)
                        .with("predictedNs", times.predictedMs() * 1e6)
                        .with("cpuMeanNs", times.cpuMs() * 1e6)
                        .with("gpuMeanNs", times.gpuMs() * 1e6);
        double here = Double.isNaN(times.gpuMs()) ? times.cpuMs() : times.gpuMs();
        String peer = "published for an Ascend A3 (910B1)";
        return new BenchRow("ascend", row.describe(), peer, row.publishedMs() / here, figures);
    }

    private static void addTo(TextTable table, int number, AscendRow row, Times times) {
        double off = times.predictedMs() / row.publishedMs() - 1;
        String cells =
                text(
                        "%d|%d|%d|%d|%d|%.3f|%.2f",
                        number,
                        row.ranks(),
                        row.m(),
                        row.k(),
                        row.n(),
                        row.publishedMs(),
                        row.publishedTflops());
        String offBy = Double.isNaN(off) ? "-" : text("%+.1f%%", 100 * off);
        List<String> measured =
                List.of(
                        cells,
                        ms(times.predictedMs()),
                        offBy,
                        ms(times.cpuMs()),
                        ms(times.gpuMs()));
        table.row(String.join("|", measured).split("\\|"));
    }

    private static String ms(double ms) {
        return Double.isNaN(ms) ? "-" : text("%.3f", ms);
    }

    private static String text(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
