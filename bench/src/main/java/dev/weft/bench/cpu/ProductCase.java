package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.peers.ChildCommand;
import dev.weft.bench.peers.JavaProduct;
import dev.weft.bench.peers.OpenBlasLibrary;
import dev.weft.bench.peers.Programs;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.gemm.Gemms;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;

/**
 * The product alone, from one thread to all cores: Weft beside OpenBLAS, MKL, NumPy and PyTorch.
 * With few rows or few columns, which read a weight once, beside how fast memory is read, too.
 */
final class ProductCase implements BenchCase {

    private static final List<Shape> SHAPES =
            List.of(
                    Shape.cube(1024),
                    Shape.cube(2048),
                    new Shape(512, 1024, 4096),
                    new Shape(2048, 1024, 2048),
                    new Shape(4096, 1, 4096),
                    new Shape(4096, 2, 4096),
                    new Shape(4096, 4, 4096),
                    new Shape(4096, 8, 4096),
                    new Shape(4096, 16, 4096),
                    new Shape(4096, 32, 4096),
                    new Shape(4096, 64, 4096),
                    new Shape(256, 512, 32768),
                    new Shape(1, 4096, 4096),
                    new Shape(2, 4096, 4096),
                    new Shape(4, 4096, 4096),
                    new Shape(8, 4096, 4096),
                    new Shape(16, 4096, 4096),
                    new Shape(32, 4096, 4096));

    /** Up to as many rows, or columns, are few. */
    private static final long FEW = 32;

    private static final List<Shape> QUICK_SHAPES =
            List.of(Shape.cube(256), new Shape(192, 256, 320), new Shape(3, 256, 320));

    @Override
    public String item() {
        return "product";
    }

    @Override
    public void run(Settings settings, Sink sink) throws IOException, InterruptedException {
        Optional<String> noOpenBlas = OpenBlasLibrary.unavailable();
        noOpenBlas.ifPresent(why -> sink.skipped(item(), "OpenBLAS: " + why));
        OpenBlasLibrary openBlas = noOpenBlas.isPresent() ? null : OpenBlasLibrary.loaded();
        Gemms.nativeUnavailable()
                .ifPresent(why -> sink.skipped(item(), "peak of the cores: " + why));
        JavaProduct.Library.MKL.unavailable().ifPresent(why -> sink.skipped(item(), why));
        List<String> python = pythonModules(settings.folder(), sink);
        for (int threads : threadCounts(settings.cores())) {
            double peakGflops = 0;
            for (Shape shape : settings.quick() ? QUICK_SHAPES : SHAPES) {
                try (ProductTurns turns = new ProductTurns(shape, threads)) {
                    add(turns, shape, threads, openBlas, python, settings);
                    peakGflops = Math.max(peakGflops, turns.measure(settings, item(), sink));
                } catch (SteppedProcess.PeerException e) {
                    sink.skipped(item(), shape + ": " + e.getMessage());
                }
            }
            if (peakGflops > 0) {
                sink.machine("fmaPeakGflopsThreads" + threads, peakGflops);
            }
        }
    }

    private static void add(
            ProductTurns turns,
            Shape shape,
            int threads,
            OpenBlasLibrary openBlas,
            List<String> python,
            Settings settings)
            throws IOException, InterruptedException {
        turns.addWeft(DType.FP32);
        if (openBlas != null) {
            turns.addOpenBlas(openBlas);
        }
        if (JavaProduct.Library.MKL.unavailable().isEmpty()) {
            turns.addMkl(settings.folder());
        }
        for (String module : python) {
            turns.addPython(module, DType.FP32, settings.folder());
        }
        // Narrow inputs of large products are looked at with the fewest and the most threads.
        boolean edge = threads == 1 || threads == settings.cores();
        boolean few = Math.min(shape.m(), shape.n()) <= FEW;
        if (few || edge && shape.m() == shape.n() && shape.m() == shape.k()) {
            turns.addWeft(DType.FP16);
            turns.addWeft(DType.BF16);
            if (python.contains("torch")) {
                turns.addPython("torch", DType.BF16, settings.folder());
            }
        }
        if (few) {
            turns.addRead();
        }
        if (Gemms.nativeUnavailable().isEmpty()) {
            turns.addPeak();
        }
    }

    /** Two, powers of four, and all cores. */
    static List<Integer> threadCounts(int cores) {
        TreeSet<Integer> counts = new TreeSet<>();
        counts.add(Math.min(2, cores));
        for (int threads = 1; threads <= cores; threads *= 4) {
            counts.add(threads);
        }
        counts.add(cores);
        return List.copyOf(counts);
    }

    private List<String> pythonModules(Path folder, Sink sink)
            throws IOException, InterruptedException {
        List<String> found = new ArrayList<>();
        if (Programs.onPath("python3").isEmpty()) {
            sink.skipped(item(), "NumPy and PyTorch: no python3 on the PATH");
            return found;
        }
        for (String module : List.of("numpy", "torch")) {
            // PyTorch's program makes its numbers with NumPy.
            String script = "import numpy, " + module;
            ChildCommand.Output output = Programs.run(folder, "python3", "-c", script);
            if (output.ok()) {
                found.add(module);
            } else {
                sink.skipped(item(), module + ": " + output.lastLine());
            }
        }
        return found;
    }
}
