package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRecord;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.DeviceBench;
import dev.weft.bench.measure.Resources;
import dev.weft.bench.peers.BenchFolder;
import dev.weft.cli.console.Version;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.ffi.CublasLt;
import dev.weft.ffi.CudaDevices;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Consumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;

/** {@code weft bench gpu}: runs the cases one after the other and writes the record. */
@Command(
        name = "gpu",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false,
        description =
                "Weft on one GPU compared with cuBLAS's product alone, the bare gather and, where"
                        + " it is installed, PyTorch. They take turns, and every row is verified."
                        + " Leave the machine alone meanwhile.",
        footer = {
            "",
            "Examples:",
            "  ./weft bench gpu --quick                     does it work here? (not how fast)",
            "  ./weft bench gpu --json bench.json           everything, for the record",
            "  ./weft bench gpu --only overlap --rows 1,5 --iterations 50",
            "",
            "Items: overlap (gather and product at once, peers in host memory), fp8 (the same with",
            "operands of 8 bits), shared (ranks that share the GPU), calls (1000 calls with changing",
            "inputs), queue (calls two deep), rows (calls of fewer rows than the operator has room",
            "for), host (what a call costs the host), blocks (few rows with B in blocks of 8 and 4",
            "bits), helion (the Helion example's call beside the operator), sums (products that are",
            "summed over ranks, peers in host memory), shared-sums (the same of ranks that share the",
            "GPU), norm (all-reduce, residual and norm of ranks that share the GPU).",
            "",
            "Exit codes: 0 measured and verified, 1 failed or a wrong product, 2 wrong usage, or"
                    + " no",
            "GPU or cublasLt. A row that is slower than it should be says MISSES and is no failure."
        })
public final class GpuCommand extends DeviceBench {

    private static final int ITERATIONS = 15;
    private static final int QUICK_ITERATIONS = 3;
    private static final int MAX_ITERATIONS = 100_000;
    private static final int QUICK_ROWS = 3;
    private static final List<String> WITH_PYTORCH =
            List.of(GpuOverlapCase.OVERLAP, GpuSharedCase.ITEM, GpuNormCase.ITEM);

    @Option(
            names = "--only",
            paramLabel = "ITEMS",
            split = ",",
            description =
                    "Only these, separated by commas: overlap, fp8, shared, calls, queue, rows, host, blocks, helion, sums,"
                            + " shared-sums, norm.")
    List<String> only;

    @Option(
            names = "--rows",
            paramLabel = "NUMBERS",
            split = ",",
            description =
                    "Only these rows of overlap, 1 to 18: even shards to 9, uneven ones 10, few rows"
                            + " from 11 on (default: all; --quick: 1,2,3).")
    List<Integer> rows;

    @Option(
            names = "--iterations",
            paramLabel = "N",
            description = "Rounds that count, of overlap and shared (default: 15; --quick: 3).")
    Integer iterations;

    /**
     * One of the bench's questions: measures, verifies and hands over rows one by one. Runs alone
     * on the GPU, on the command's thread.
     */
    @FunctionalInterface
    private interface Question {
        void run(GpuBench bench, Consumer<BenchRow> sink) throws IOException, InterruptedException;
    }

    /** By item, in the order in which they run. */
    private static final Map<String, Question> QUESTIONS = questions();

    private static Map<String, Question> questions() {
        Map<String, Question> all = new LinkedHashMap<>();
        all.put(GpuOverlapCase.OVERLAP, GpuOverlapCase::run);
        all.put(GpuOverlapCase.FP8, GpuOverlapCase::runFp8);
        all.put(GpuSharedCase.ITEM, GpuSharedCase::run);
        all.put(GpuCallsCase.GATHER.item(), GpuCallsCase::run);
        all.put(GpuQueueCase.ITEM, GpuQueueCase::run);
        all.put(GpuRowsCase.ITEM, GpuRowsCase::run);
        all.put(GpuHostCase.ITEM, GpuHostCase::run);
        all.put(GpuBlocksCase.ITEM, GpuBlocksCase::run);
        all.put(GpuHelionCase.ITEM, GpuHelionCase::run);
        all.put(GpuSumsCase.ITEM, GpuSumsCase::run);
        all.put(GpuSharedSumsCase.ITEM, GpuSharedSumsCase::run);
        all.put(GpuNormCase.ITEM, GpuNormCase::run);
        return all;
    }

    @Override
    public Integer call() throws IOException, InterruptedException {
        List<String> items = checkedItems(only, List.copyOf(QUESTIONS.keySet()));
        List<Integer> numbers = checkedRows(rows, GpuOverlapRow.ROWS.size(), QUICK_ROWS);
        int rounds = checkedIterations();
        open();
        Optional<String> missing = Gpu.unavailable().or(CublasLt::unavailable);
        if (missing.isPresent()) {
            PrintWriter err = spec.commandLine().getErr();
            err.println("weft: no GPU bench: " + missing.get().lines().findFirst().orElse(""));
            err.flush();
            return ExitCode.USAGE;
        }
        GpuTable table = new GpuTable(quick, console::print);
        // Never closed: cublasLt's handle needs the context as long as the process lives.
        Gpu gpu = Gpu.open(0);
        Map<String, Object> machine = machine(gpu);
        console.print(
                "%s, driver for CUDA %s, cublasLt %s"
                        .formatted(gpu, machine.get("driver"), machine.get("cublasLt")));
        console.print(rounds + " rounds; times in us, median/distance between the quartiles");
        try (Resources opened = new Resources();
                DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            Optional<GpuPytorch> pytorch =
                    items.stream().anyMatch(WITH_PYTORCH::contains)
                            ? pytorch(opened, machine)
                            : Optional.empty();
            GpuBench bench = new GpuBench(gpu, check, stream, quick, rounds, numbers, pytorch);
            for (Map.Entry<String, Question> each : QUESTIONS.entrySet()) {
                if (items.contains(each.getKey())) {
                    each.getValue().run(bench, table);
                }
            }
        }
        table.summary();
        write(
                machine,
                OptionalInt.of(rounds),
                table.rows().stream().map(BenchRow::rounded).toList(),
                List.of());
        return table.rows().stream().allMatch(BenchRow::verified) ? ExitCode.OK : ExitCode.SOFTWARE;
    }

    /** Where it is not installed, its columns stay empty. */
    private Optional<GpuPytorch> pytorch(Resources opened, Map<String, Object> machine)
            throws IOException, InterruptedException {
        Path folder = opened.add(BenchFolder.create()).path();
        try {
            GpuPytorch pytorch = opened.add(new GpuPytorch(folder, console::print));
            machine.put("pytorch", pytorch.name());
            console.print(pytorch.name() + " takes turns");
            return Optional.of(pytorch);
        } catch (IOException e) {
            machine.put("pytorch", "none");
            console.print("without PyTorch: " + e.getMessage());
            return Optional.empty();
        }
    }

    private static Map<String, Object> machine(Gpu gpu) throws IOException {
        int driver = CudaDevices.driverVersion();
        long cublas = CublasLt.version();
        Map<String, Object> machine = BenchRecord.host();
        machine.put("engine", "gated");
        machine.put("gpu", gpu.name());
        machine.put("capability", gpu.capability());
        machine.put("multiprocessors", gpu.multiprocessors());
        machine.put("memoryBytes", CudaDevices.totalMemory(gpu.ordinal()));
        machine.put("driver", driver / 1000 + "." + driver % 1000 / 10);
        machine.put("cublasLt", cublas / 10_000 + "." + cublas / 100 % 100 + "." + cublas % 100);
        machine.put("clocks", "unknown");
        return machine;
    }

    private int checkedIterations() {
        if (iterations != null && (iterations < 1 || iterations > MAX_ITERATIONS)) {
            throw refused("--iterations " + iterations + ": expected 1 to " + MAX_ITERATIONS);
        }
        return iterations != null ? iterations : quick ? QUICK_ITERATIONS : ITERATIONS;
    }
}
