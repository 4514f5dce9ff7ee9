package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.MadeUpData;
import dev.weft.bench.measure.Operands;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.MpiProduct;
import dev.weft.bench.peers.MpiProgram;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.op.Operator.View;
import dev.weft.tensor.DType;
import dev.weft.tune.Quantiles;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Gather and product in one call, beside MPI's gather and then OpenBLAS's product, on all cores.
 */
final class FusedCase implements BenchCase {

    private static final List<Shape> SHAPES =
            List.of(
                    new Shape(2048, 1024, 2048),
                    new Shape(4096, 64, 4096),
                    new Shape(4096, 32, 4096),
                    new Shape(4096, 16, 4096),
                    new Shape(8192, 16, 2048),
                    new Shape(2048, 256, 2048),
                    Shape.cube(1024));

    private static final List<Shape> QUICK_SHAPES =
            List.of(Shape.cube(256), new Shape(512, 16, 256));

    /** From so many cores on there are twice the rows, so that a shard is no trifle. */
    private static final int MANY_CORES = 16;

    private static final int FUSED = 0;
    private static final int PRODUCT = 1;
    private static final int PEER = 2;

    /** What Weft must reach of its own product's speed and the gather's time together. */
    private static final double REQUIRED = 0.97;

    /** Gathers that take this part of the product's time or more must pay off visibly. */
    private static final double LARGE_GATHER = 0.2;

    private static final double VISIBLE = 1.1;

    @Override
    public String item() {
        return "fused";
    }

    @Override
    public void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException {
        if (settings.cores() < 2) {
            throw new SkippedException("needs two cores or more, a rank each");
        }
        MpiProgram program = MpiProgram.compile(settings.folder());
        int factor = settings.cores() >= MANY_CORES && !settings.quick() ? 2 : 1;
        for (Shape base : settings.quick() ? QUICK_SHAPES : SHAPES) {
            Shape shape = new Shape(base.m() * factor, base.n(), base.k());
            try {
                measure(settings, program, shape, sink);
            } catch (SteppedProcess.PeerException e) {
                sink.skipped(item(), shape + ": " + e.getMessage());
            }
        }
    }

    private void measure(Settings settings, MpiProgram program, Shape shape, Sink sink)
            throws IOException, InterruptedException {
        int ranks = settings.cores();
        try (Operands operands = Operands.of(shape, DType.FP32);
                WeftRanks weft =
                        WeftRanks.gathering(ranks, operands, false, op -> op.computeWorkers(1));
                MpiProduct peer = program.start(ranks, MpiProduct.Work.GATHER, shape)) {
            ProductCheck.require("Weft", operands.a(), operands.b(), weft.product());
            weft.requireBits(weft.product());
            peer.takeNs();
            MadeUpData.requireSame(
                    program.name(),
                    shape,
                    DType.FP32,
                    MadeUpData.checksum(weft.product()),
                    peer.checksum());
            Interleaved.Outcome outcome =
                    new Interleaved(Interleaved.Effort.of(settings.quick()))
                            .measure(
                                    List.of(
                                            () -> weft.takeNs(View.PIPELINED),
                                            () -> weft.takeNs(View.COMPUTE_ONLY),
                                            peer::takeNs));
            Map<String, Double> figures = figures(outcome, peer);
            figures.put("ranks", (double) ranks);
            figures.put("peerPinned", peer.pinned() ? 1.0 : 0.0);
            String name = "%s, %d ranks, %s".formatted(shape, ranks, weft.operator().plan().name());
            sink.row(
                    new BenchRow(
                            item(), name, program.name(), outcome.speed(FUSED, PEER), figures));
        }
    }

    private static Map<String, Double> figures(Interleaved.Outcome outcome, MpiProduct peer) {
        double[] gatherNs = peer.latest(outcome.rounds(), MpiProduct.Step::mpiNs);
        double[] productNs = peer.latest(outcome.rounds(), MpiProduct.Step::productNs);
        double[] addedNs = peer.latest(outcome.rounds(), MpiProduct.Step::addedNs);
        double gatherOverProduct = Interleaved.medianRatio(addedNs, productNs);
        double productRatio = Interleaved.medianRatio(productNs, outcome.values(PRODUCT));
        double needed = REQUIRED * productRatio * (1 + gatherOverProduct);
        double ratio = outcome.speed(FUSED, PEER);
        boolean pass = ratio >= needed && (gatherOverProduct < LARGE_GATHER || ratio > VISIBLE);
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("rounds", (double) outcome.rounds());
        outcome.put(figures, "weft", FUSED);
        figures.put("weftProductNs", outcome.medianNs(PRODUCT));
        outcome.put(figures, "peer", PEER);
        figures.put("peerGatherNs", Quantiles.median(gatherNs));
        figures.put("peerProductNs", Quantiles.median(productNs));
        figures.put("gatherOverProduct", gatherOverProduct);
        figures.put("productRatio", productRatio);
        figures.put("needed", needed);
        figures.put("pass", pass ? 1.0 : 0.0);
        return figures;
    }
}
