package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.Lab;
import dev.weft.bench.peers.Mpi;
import dev.weft.bench.peers.MpiProduct;
import dev.weft.bench.peers.MpiProduct.Work;
import dev.weft.bench.peers.MpiProgram;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.report.RunRecord;
import dev.weft.report.Samples;
import dev.weft.report.Views;
import dev.weft.tune.Quantiles;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/**
 * How much of a gather or a reduction over a network hides behind the product: a rank on each host
 * of a lab, links slowed down until the transfers take half as long as the product, as long, and
 * twice as long. Compared with a C program that calls MPI and OpenBLAS one after the other, on the
 * same links.
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
        Lab lab = Lab.current().orElseThrow(() -> new SkippedException(Lab.missing(ITEM)));
        Hosts hosts =
                new Hosts(
                        settings, sink, lab, Mpi.find(settings.folder()), program(settings, sink));
        for (Transfers transfers : Transfers.values()) {
            hosts.measure(transfers);
        }
    }

    private static Optional<MpiProgram> program(Settings settings, Sink sink)
            throws IOException, InterruptedException {
        try {
            return Optional.of(MpiProgram.compile(settings.folder()));
        } catch (SkippedException e) {
            sink.skipped(ITEM, "the C program: " + e.getMessage());
            return Optional.empty();
        }
    }

    /** What travels. */
    private enum Transfers {
        GATHER("gather", new Shape(2048, 8192, 2048), Work.GATHER),
        SUMS_WHOLE("sums, whole", new Shape(2048, 1024, 4096), Work.REDUCE_SCATTER),
        SUMS_BY_RANK("sums, by-rank", new Shape(2048, 1024, 4096), Work.REDUCE_SCATTER);

        private final String label;
        private final Shape shape;
        private final Work work;

        Transfers(String label, Shape shape, Work work) {
            this.label = label;
            this.shape = shape;
            this.work = work;
        }

        Shape shape(boolean quick) {
            return quick ? Shape.cube(256) : shape;
        }

        List<String> options() {
            return switch (this) {
                case GATHER -> List.of();
                case SUMS_WHOLE -> List.of("--op", "matmul-reduce-scatter", "--order", "whole");
                case SUMS_BY_RANK -> List.of("--op", "matmul-reduce-scatter", "--order", "by-rank");
            };
        }

        /** Bytes that the busiest link carries in one direction. */
        double bytes(Shape shape, int ranks) {
            double c = (double) shape.m() * shape.n() * Float.BYTES;
            return switch (this) {
                case GATHER -> (double) shape.m() * shape.k() * Float.BYTES * (ranks - 1) / ranks;
                // Sums of all rows go along the chain.
                case SUMS_WHOLE -> c;
                case SUMS_BY_RANK -> c * (ranks - 1) / ranks;
            };
        }
    }

    /** The lab that this process is in. */
    private record Hosts(
            Settings settings, Sink sink, Lab lab, Mpi mpi, Optional<MpiProgram> program) {

        void measure(Transfers transfers) throws IOException, InterruptedException {
            Shape shape = transfers.shape(settings.quick());
            OverlapRuns runs =
                    new OverlapRuns(
                            settings.folder(),
                            shape.m(),
                            shape.k(),
                            lab.hosts(),
                            1,
                            settings.quick() ? 1 : 3,
                            settings.quick() ? 3 : 9);
            rate("none");
            double productNs = ns(weft(transfers, runs, shape).views().computeOnly());
            for (double ratio : settings.quick() ? List.of(1.0) : RATIOS) {
                double bits = 8 * transfers.bytes(shape, lab.hosts()) / PAYLOAD;
                long kbit = Math.round(bits / (ratio * productNs * 1e-9) / 1000);
                rate(kbit + "kbit");
                String name =
                        String.format(
                                Locale.ROOT,
                                "%s %s, %.0f Mbit/s, ratio %.1f",
                                transfers.label,
                                shape,
                                kbit / 1000.0,
                                ratio);
                double pipelined = overlap(name, weft(transfers, runs, shape));
                if (program.isPresent()) {
                    compare(name, pipelined, transfers.work, shape, runs);
                }
            }
            rate("none");
        }

        private void rate(String rate) throws IOException, InterruptedException {
            lab.rate(rate, settings.folder());
        }

        private RunRecord weft(Transfers transfers, OverlapRuns runs, Shape shape)
                throws IOException, InterruptedException {
            List<String> options = new ArrayList<>(transfers.options());
            options.add("--mpi-args");
            options.add(String.join(" ", mpi.implementation().onePerHost()));
            return runs.run("auto", "mpi", shape.n(), options.toArray(String[]::new));
        }

        /**
         * Hands over how much was hidden. What an order of sums sends is not what its sequential
         * view sends, so the parts are those of the algorithm itself, each alone.
         */
        private double overlap(String name, RunRecord weft) {
            Views views = weft.views();
            double transfers = ns(views.commOnly());
            double product = ns(views.computeOnly());
            double pipelined = ns(views.pipelined());
            double sequential = ns(views.sequential());
            double hidden = (transfers + product - pipelined) / Math.min(transfers, product);
            Figures figures =
                    new Figures()
                            .with("hosts", lab.hosts())
                            .with("transfersOverProduct", transfers / product)
                            .with("commOnlyNs", transfers)
                            .with("computeOnlyNs", product)
                            .with("sequentialNs", sequential)
                            .with("sequentialCommNs", ns(views.sequentialComm()))
                            .with("sequentialProductNs", ns(views.sequentialCompute()))
                            .with("pipelined", views.pipelined())
                            .with("progressCpu", weft.execution().progressCpu())
                            .with("hidden", hidden)
                            .with("pass", hidden >= REQUIRED);
            String peer = mpi.implementation().label() + ", Weft's product";
            sink.row(new BenchRow(ITEM, name, peer, sequential / pipelined, figures));
            return pipelined;
        }

        private static double ns(Samples view) {
            return view.median() * 1e3;
        }

        private void compare(
                String name, double pipelinedNs, Work work, Shape shape, OverlapRuns runs)
                throws IOException, InterruptedException {
            int rounds = runs.iterations();
            try (MpiProduct peer = program.get().startOnHosts(lab.hosts(), work, shape)) {
                for (int i = 0; i < runs.warmup() + rounds; i++) {
                    peer.takeNs();
                }
                double total = median(peer, rounds, MpiProduct.Step::totalNs);
                Figures figures =
                        new Figures()
                                .with("weftMedianNs", pipelinedNs)
                                .with("peerMedianNs", total)
                                .with("peerMpiNs", median(peer, rounds, MpiProduct.Step::mpiNs))
                                .with(
                                        "peerProductNs",
                                        median(peer, rounds, MpiProduct.Step::productNs));
                String peerName = program.get().name();
                sink.row(new BenchRow(ITEM, name, peerName, total / pipelinedNs, figures));
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
