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
import dev.weft.bench.peers.MpiProduct.Work;
import dev.weft.bench.peers.MpiProgram;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.op.Operator.View;
import dev.weft.plan.Reduction.Order;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tune.Quantiles;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Product and reduction in one call, beside OpenBLAS's product and then MPI's reduction: one rank
 * per core, in both orders of sums; and with few rows, as two processes, where latency counts.
 */
final class ReduceCase implements BenchCase {

    static final String ITEM = "reduce";

    /** K is that of one rank: what the reduction costs beside the product depends on it alone. */
    private static final List<Shape> SHAPES =
            List.of(
                    new Shape(1024, 1024, 4096),
                    new Shape(2048, 2048, 512),
                    new Shape(2048, 2048, 128),
                    new Shape(2048, 2048, 32),
                    new Shape(2048, 2048, 8));

    private static final List<Shape> QUICK_SHAPES =
            List.of(new Shape(128, 96, 64), new Shape(33, 47, 5));

    private static final int[] FEW_ROWS = {1, 2, 4, 8, 16, 32};
    private static final int[] QUICK_FEW_ROWS = {1, 4};
    private static final int CALLS = 5;

    private static final int WEFT = 0;
    private static final int BY_RANK = 1;

    /** Reductions that take this part of the product's time or more must pay off visibly. */
    private static final double LARGE = 0.2;

    private static final double VISIBLE = 1.2;

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException {
        if (settings.cores() < 2) {
            throw new SkippedException("needs two cores or more, a rank each");
        }
        Bench bench = new Bench(settings, sink, MpiProgram.compile(settings.folder()));
        int ranks = settings.cores();
        for (Work work : List.of(Work.REDUCE_SCATTER, Work.ALL_REDUCE)) {
            for (Shape own : settings.quick() ? QUICK_SHAPES : SHAPES) {
                bench.orders(work, new Shape(own.m(), own.n(), own.k() * ranks), ranks);
            }
        }
        long side = settings.quick() ? 256 : 4096;
        for (int rows : settings.quick() ? QUICK_FEW_ROWS : FEW_ROWS) {
            bench.fewRows(new Shape(rows, side, side), 2);
        }
    }

    /** What all rows have in common. */
    private record Bench(Settings settings, Sink sink, MpiProgram program) {

        /** Ranks as threads, in both orders of sums. */
        void orders(Work work, Shape shape, int ranks) throws IOException, InterruptedException {
            boolean all = work == Work.ALL_REDUCE;
            try (Operands operands = Operands.of(shape, DType.FP32);
                    WeftRanks alone = WeftRanks.gathering(1, operands, false, op -> op);
                    WeftRanks whole = WeftRanks.reducing(ranks, operands, all, Order.WHOLE);
                    WeftRanks byRank = WeftRanks.reducing(ranks, operands, all, Order.BY_RANK);
                    MpiProduct peer = program.start(ranks, work, shape)) {
                ProductCheck.require("Weft", operands.a(), operands.b(), alone.product());
                whole.requireBits(alone.product());
                byRank.forEachPart(
                        operands.a(),
                        (own, a) -> ProductCheck.require("Weft by rank", a, operands.b(), own));
                requireSame(shape, MadeUpData.checksum(alone.product()), peer);
                Interleaved.Outcome outcome =
                        measure(
                                List.of(
                                        () -> whole.takeNs(View.PIPELINED),
                                        () -> byRank.takeNs(View.PIPELINED),
                                        peer::takeNs));
                String what = all ? "all-reduce" : "scatter";
                String form = "%s %s, %d ranks, %s, %s";
                for (Order order : List.of(Order.WHOLE, Order.BY_RANK)) {
                    WeftRanks weft = order == Order.WHOLE ? whole : byRank;
                    String plan = weft.operator().plan().name();
                    row(
                            form.formatted(what, shape, ranks, order.label(), plan),
                            outcome,
                            order == Order.WHOLE ? WEFT : BY_RANK,
                            peer,
                            Map.of("ranks", (double) ranks));
                }
            } catch (SteppedProcess.PeerException e) {
                sink.skipped(ITEM, shape + ": " + e.getMessage());
            }
        }

        /** Ranks as processes, each call alone. */
        void fewRows(Shape shape, int ranks) throws IOException, InterruptedException {
            try (WeftProcesses weft = new WeftProcesses(ranks, shape, settings.folder());
                    MpiProduct peer = program.start(ranks, Work.ALL_REDUCE, shape)) {
                double sum = requireProduct(shape, weft.checksum());
                requireSame(shape, sum, peer);
                Interleaved.Outcome outcome =
                        measure(List.of(() -> weft.takeNs(CALLS), () -> peer.takeNs(CALLS)));
                Map<String, Double> figures = new LinkedHashMap<>();
                figures.put("callsPerTurn", (double) CALLS);
                figures.put("ranks", (double) ranks);
                String form = "all-reduce %s, %d processes, %s";
                row(form.formatted(shape, ranks, weft.plan()), outcome, WEFT, peer, figures);
            } catch (SteppedProcess.PeerException e) {
                sink.skipped(ITEM, shape + ": " + e.getMessage());
            }
        }

        /** The same bits have the same sum. */
        private static double requireProduct(Shape shape, double sum) {
            try (Operands operands = Operands.of(shape, DType.FP32);
                    WeftRanks alone = WeftRanks.gathering(1, operands, false, op -> op)) {
                Matrix product = alone.product();
                ProductCheck.require("Weft", operands.a(), operands.b(), product);
                double expected = MadeUpData.checksum(product);
                if (sum != expected) {
                    throw new IllegalStateException(
                            "wrong product of Weft's processes at %s: weighted sum %s, of one rank %s"
                                    .formatted(shape, sum, expected));
                }
                return sum;
            }
        }

        private void requireSame(Shape shape, double sum, MpiProduct peer)
                throws IOException, InterruptedException {
            peer.takeNs();
            MadeUpData.requireSame(program.name(), shape, DType.FP32, sum, peer.checksum());
        }

        private Interleaved.Outcome measure(List<Interleaved.Turn> turns)
                throws IOException, InterruptedException {
            return new Interleaved(Interleaved.Effort.of(settings.quick())).measure(turns);
        }

        private void row(
                String name,
                Interleaved.Outcome outcome,
                int weft,
                MpiProduct peer,
                Map<String, Double> more) {
            int last = outcome.ns().length - 1;
            double[] productNs = peer.latest(outcome.rounds(), MpiProduct.Step::productNs);
            double[] addedNs = peer.latest(outcome.rounds(), MpiProduct.Step::addedNs);
            double reduceOverProduct = Interleaved.medianRatio(addedNs, productNs);
            boolean latency = more.containsKey("callsPerTurn");
            double needed = reduceOverProduct >= LARGE && !latency ? VISIBLE : 1;
            double ratio = outcome.speed(weft, last);
            Map<String, Double> figures = new LinkedHashMap<>(more);
            figures.put("rounds", (double) outcome.rounds());
            outcome.put(figures, "weft", weft);
            outcome.put(figures, "peer", last);
            figures.put("peerPinned", peer.pinned() ? 1.0 : 0.0);
            figures.put(
                    "peerReduceNs",
                    Quantiles.median(peer.latest(outcome.rounds(), MpiProduct.Step::mpiNs)));
            figures.put("peerProductNs", Quantiles.median(productNs));
            figures.put("reduceOverProduct", reduceOverProduct);
            figures.put("needed", needed);
            figures.put("pass", ratio >= needed ? 1.0 : 0.0);
            sink.row(new BenchRow(ITEM, name, program.name(), ratio, figures));
        }
    }
}
