package dev.weft.cli.simulate;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.OptionValues;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.GpuModel;
import dev.weft.files.PrivateFiles;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.sim.TileEngine;
import dev.weft.tensor.DType;
import dev.weft.tune.Calibration;
import dev.weft.tune.Effort;
import dev.weft.tune.HostModel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Function;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code weft calibrate}: measures this machine and stores it as the model {@code here}. */
@Command(
        name = "calibrate",
        description =
                "Measures the cost of products, copies and signals on this machine and"
                        + " stores it as the machine 'here', which auto and -r sim -v here use. Run"
                        + " nothing else meanwhile.",
        footer = {
            "",
            "Examples:",
            "  ./weft calibrate                             half a minute",
            "  ./weft calibrate --output lab.json           keep it elsewhere",
            "  ./weft calibrate --gpu                       GPU 0, some seconds",
            "  ./weft run -r sim -v here -n 2 --gm 4096 --gk 2048 --gn 64",
            "",
            "Exit codes: 0 measured and kept, 1 failed, 2 wrong usage."
        })
public final class CalibrateCommand extends WeftCommand {

    @Option(
            names = "--engine",
            paramLabel = "NAME",
            defaultValue = "auto",
            description = "Product engine, as of run (default: ${DEFAULT-VALUE}).")
    String engine;

    @Option(names = "--gpu", description = "Measure GPU 0 instead, for auto on cards of that kind.")
    boolean gpu;

    @Option(names = "--quick", description = "Some seconds instead of half a minute.")
    boolean quick;

    @Option(
            names = "--output",
            paramLabel = "FILE",
            description =
                    "Write the model to this file instead of the folder weft in the"
                            + " user's cache, where each engine and number of cores has a file.")
    Path output;

    @Override
    public Integer call() throws IOException {
        if (output == null) {
            // Checked before half a minute is spent on it.
            PrivateFiles.cache(Machines.hereFolder().toAbsolutePath());
        } else {
            checkOutput(output.toAbsolutePath());
        }
        Console console = console(false);
        return gpu ? measureGpu(console) : measureHost(console);
    }

    private int measureGpu(Console console) {
        if (quick || !engine.equals("auto")) {
            throw new UsageException(
                    "--gpu with %s: expected neither --engine nor --quick, which are for CPUs",
                    quick ? "--quick" : "--engine " + engine);
        }
        Gpu.unavailable()
                .ifPresent(
                        why -> {
                            throw new UsageException("--gpu: no GPU: " + why);
                        });
        Gpu card = Gpu.open(0);
        console.print("Measuring...");
        Machine machine = GpuCalibration.measure(card);
        TileEngine tiles = (TileEngine) machine.engine();
        console.line("Machine", machine.description());
        for (DType type : DType.values()) {
            Double gflops = tiles.gflops().get(type);
            if (gflops != null) {
                double teraflops = gflops * tiles.units() / 1e3;
                console.line("A of " + type.label(), text("%.0f TFLOP/s", teraflops));
            }
        }
        console.line("Tiles", text("%.2f us each besides their products", tiles.tileUs()));
        console.line(
                "Copies",
                text(
                        "%.1f GB/s from host memory, %.2f us each besides",
                        machine.node().gbps(), machine.overheads().transferUs()));
        Machine.Copies copies = machine.copies();
        console.line(
                "Narrow rows",
                text(
                        "%.1f ns each besides, %.1f ns over %.0f KiB apart",
                        copies.narrowRowNs(), copies.farRowNs(), copies.farBytes() / 1024));
        console.line("Calls", text("%.1f us each besides", machine.overheads().callUs()));
        keep(machine, output == null ? GpuModel.path(card) : output.toAbsolutePath(), console);
        return 0;
    }

    private void keep(Machine machine, Path file, Console console) {
        if (output == null) {
            MachineFile.writeCached(machine, file);
        } else {
            MachineFile.write(machine, file);
        }
        console.print("Kept in " + file);
    }

    private int measureHost(Console console) {
        OptionValues.oneOf("--engine", engine, Gemms.NAMES.toArray(String[]::new));
        DType any = engine.equals("amx") ? DType.BF16 : DType.FP32;
        Gemm named = Gemms.byName(engine, any, any);
        Function<DType, Gemm> engines =
                type -> engine.equals("auto") ? Gemms.auto(type, type) : named;
        Path file = output == null ? HostModel.path(engines) : output.toAbsolutePath();
        console.print("Measuring...");
        Machine machine =
                Calibration.measure(
                        engines, quick ? Effort.quick(() -> {}) : Effort.thorough(() -> {}));
        print(machine, console);
        keep(machine, file, console);
        if (!Calibration.isUndisturbed(machine)) {
            console.print(
                    "Other programs used the cores meanwhile, so auto uses it for an hour at most:"
                            + " calibrate again while nothing else runs.");
        }
        return 0;
    }

    private void checkOutput(Path file) {
        if (file.getParent() == null
                || !Files.isDirectory(file.getParent())
                || !Files.isWritable(file.getParent())
                || Files.isDirectory(file)) {
            throw new UsageException(
                    "--output " + output + ": expected a file in a folder that can be written to");
        }
    }

    private static void print(Machine machine, Console console) {
        CoreEngine cores = (CoreEngine) machine.engine();
        console.line("Machine", machine.description());
        for (DType type : DType.UNSCALED) {
            CoreEngine.Costs costs = cores.costs().get(type);
            if (costs != null) {
                console.line(
                        "A of " + type.label(),
                        text(
                                "%.1f GFLOP/s a core; %.3f ns an element of A, %.3f of a far B, %.3f of C",
                                costs.gflops(), costs.rowNs(), costs.bNs(), costs.outNs()));
            }
        }
        console.line(
                "Cores",
                text("%d, which do the work of %.2f together", cores.cores(), cores.capacity()));
        console.line(
                "Copies",
                text(
                        "%.1f GB/s by one core, %.1f by all",
                        machine.node().coreGbps(), machine.node().gbps()));
        console.line(
                "Signals",
                text("%.1f us until a sleeping thread runs", machine.overheads().wakeUs()));
    }
}
