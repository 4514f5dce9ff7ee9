package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.Lab;
import dev.weft.bench.peers.Mpi;
import dev.weft.bench.peers.MpiProduct;
import dev.weft.bench.peers.OpenBlasLibrary;
import dev.weft.bench.peers.Programs;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.statistics.Quantiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/**
 * How much of a gather over a network hides behind the product: a rank on each host of a lab, links
 * slowed down until the gather takes half as long as the product, as long, and twice as long.
 * Beside it a C program that calls MPI_Allgatherv and then multiplies, on the same links.
 */
final class LabCase implements BenchCase {

    static final String ITEM = "lab";

    private static final double REQUIRED = 0.95;

    /** Frames of 9,000 bytes carry 8,948 of payload. */
    private static final double PAYLOAD = 8948.0 / 9014;

    private static final List<Double> RATIOS = List.of(0.5, 1.0, 2.0);

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException {
        Lab around = Lab.current().orElseThrow(() -> new SkippedException(Lab.missing(ITEM)));
        Mpi mpi = Mpi.find(settings.folder());
        Shape shape = settings.quick() ? new Shape(256, 256, 256) : new Shape(2048, 8192, 2048);
        int ranks = around.hosts();
        OverlapRuns runs =
                new OverlapRuns(
                        settings.folder(),
                        shape.m(),
                        shape.k(),
                        ranks,
                        1,
                        settings.quick() ? 1 : 3,
                        settings.quick() ? 3 : 9);
        Hosts lab = new Hosts(settings, sink, around, mpi, shape, runs);
        lab.rate("none");
        double productNs = lab.weft().medianNs("sequential/compute");
        Optional<Path> plain = lab.plainProgram();
        for (double ratio : settings.quick() ? List.of(1.0) : RATIOS) {
            lab.measure(ratio, productNs, plain);
        }
        lab.rate("none");
    }

    /** The lab that this process is in, with the problem that is measured there. */
    private record Hosts(
            Settings settings, Sink sink, Lab lab, Mpi mpi, Shape shape, OverlapRuns runs) {

        void rate(String rate) throws IOException, InterruptedException {
            lab.rate(rate, settings.folder());
        }

        RunFigures weft() throws IOException, InterruptedException {
            return runs.run(
                    "auto",
                    "mpi",
                    shape.n(),
                    "--mpi-args",
                    String.join(" ", mpi.kind().onePerHost()));
        }

        Optional<Path> plainProgram() throws IOException, InterruptedException {
            try {
                Optional<String> noOpenBlas = OpenBlasLibrary.unavailable();
                if (noOpenBlas.isPresent()) {
                    throw new SkippedException(noOpenBlas.get());
                }
                Path source = Programs.source(MpiProduct.SOURCE, settings.folder());
                Path library = OpenBlasLibrary.loaded().file();
                return Optional.of(mpi.compile(source, library, settings.folder()));
            } catch (SkippedException e) {
                sink.skipped(ITEM, "the C program: " + e.getMessage());
                return Optional.empty();
            }
        }

        void measure(double ratio, double productNs, Optional<Path> plain)
                throws IOException, InterruptedException {
            double bytes = (double) runs.movedBytes() / runs.ranks();
            long kbit = Math.round(bytes * 8 / PAYLOAD / (ratio * productNs * 1e-9) / 1000);
            rate(kbit + "kbit");
            RunFigures weft = weft();
            double gather = weft.medianNs("sequential/comm");
            double product = weft.medianNs("sequential/compute");
            double pipelined = weft.medianNs("pipelined");
            double hidden = (gather + product - pipelined) / Math.min(gather, product);
            Map<String, Double> figures = new LinkedHashMap<>();
            figures.put("gatherOverProduct", gather / product);
            figures.put("gatherNs", gather);
            figures.put("productNs", product);
            figures.put("commOnlyNs", weft.medianNs("commOnly"));
            figures.put("computeOnlyNs", weft.medianNs("computeOnly"));
            figures.put("pipelinedNs", pipelined);
            figures.put("pipelinedSpreadNs", weft.spreadNs("pipelined"));
            figures.put("hidden", hidden);
            figures.put("progressCpu", weft.progressCpu());
            figures.put("pass", hidden >= REQUIRED ? 1.0 : 0.0);
            String name =
                    String.format(
                            Locale.ROOT,
                            "%s, %d hosts, %.0f Mbit/s, gather : product %.1f",
                            shape,
                            runs.ranks(),
                            kbit / 1000.0,
                            ratio);
            double sequential = weft.medianNs("sequential");
            sink.row(
                    new BenchRow(
                            ITEM,
                            name,
                            mpi.kind().label() + " gather, Weft's product",
                            sequential / pipelined,
                            figures));
            if (plain.isPresent()) {
                beside(name, pipelined, plain.get());
            }
        }

        private void beside(String name, double pipelinedNs, Path program)
                throws IOException, InterruptedException {
            OpenBlasLibrary library = OpenBlasLibrary.loaded();
            int rounds = runs.iterations();
            try (MpiProduct peer =
                    new MpiProduct(
                            List.of(mpi.startOnHosts(runs.ranks())),
                            program,
                            library,
                            MpiProduct.Work.GATHER,
                            shape,
                            settings.folder())) {
                for (int i = 0; i < runs.warmup() + rounds; i++) {
                    peer.takeNs();
                }
                double total = median(peer, rounds, MpiProduct.Step::totalNs);
                Map<String, Double> figures = new LinkedHashMap<>();
                figures.put("weftMedianNs", pipelinedNs);
                figures.put("peerMedianNs", total);
                figures.put("peerGatherNs", median(peer, rounds, MpiProduct.Step::mpiNs));
                figures.put("peerProductNs", median(peer, rounds, MpiProduct.Step::productNs));
                sink.row(
                        new BenchRow(
                                ITEM,
                                name,
                                mpi.kind().label() + " + " + library.name(),
                                total / pipelinedNs,
                                figures));
            } catch (SteppedProcess.PeerException e) {
                sink.skipped(ITEM, name + ": " + e.getMessage());
            }
        }

        private static double median(
                MpiProduct peer, int rounds, ToDoubleFunction<MpiProduct.Step> part) {
            return Quantiles.median(peer.latest(rounds, part));
        }
    }
}
