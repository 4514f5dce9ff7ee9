package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.MadeUpData;
import dev.weft.bench.measure.Operands;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.MpiProduct;
import dev.weft.bench.peers.MpiProduct.Step;
import dev.weft.bench.peers.MpiProduct.Work;
import dev.weft.bench.peers.MpiProgram;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.op.Epilogue;
import dev.weft.plan.Reduction.Order;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import dev.weft.tune.Quantiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * Product and communication in one call, beside a C program that calls OpenBLAS and MPI one after
 * the other: one rank per core; and with few rows, as two processes, where latency counts.
 *
 * @param item {@code fused}, gather and product, or {@code reduce}, product and reduction
 */
record MpiCase(String item) implements BenchCase {

    static final String FUSED = "fused";
    static final String REDUCE = "reduce";

    private static final List<Shape> GATHERS =
            List.of(
                    new Shape(2048, 1024, 2048),
                    new Shape(4096, 64, 4096),
                    new Shape(4096, 32, 4096),
                    new Shape(4096, 16, 4096),
                    new Shape(8192, 16, 2048),
                    new Shape(2048, 256, 2048),
                    Shape.cube(1024));

    private static final List<Shape> QUICK_GATHERS =
            List.of(Shape.cube(256), new Shape(512, 16, 256));

    /** K is that of one rank: what the reduction costs beside the product depends on it alone. */
    private static final List<Shape> REDUCTIONS =
            List.of(
                    new Shape(1024, 1024, 4096),
                    new Shape(2048, 2048, 512),
                    new Shape(2048, 2048, 128),
                    new Shape(2048, 2048, 32),
                    new Shape(2048, 2048, 8));

    private static final List<Shape> QUICK_REDUCTIONS =
            List.of(new Shape(128, 96, 64), new Shape(33, 47, 5));

    /** The second half of a transformer's MLP, with the norm that follows. */
    private static final List<Shape> NORMS =
            List.of(
                    new Shape(1, 2048, 5632),
                    new Shape(16, 2048, 5632),
                    new Shape(256, 2048, 5632),
                    new Shape(2048, 2048, 5632));

    private static final List<Shape> QUICK_NORMS = List.of(new Shape(33, 96, 128));

    private static final double EPSILON = 1e-5;

    private static final int[] FEW_ROWS = {1, 2, 4, 8, 16, 32};
    private static final int[] QUICK_FEW_ROWS = {1, 4};
    private static final int FEW_ROWS_RANKS = 2;
    private static final int CALLS = 5;

    /** From so many cores on there are twice the rows, so that a shard is no trifle. */
    private static final int MANY_CORES = 16;

    /** What a gather must reach of Weft's own product's speed and the gather's time together. */
    private static final double REQUIRED = 0.97;

    /** Communication that takes this part of the product's time or more must pay off visibly. */
    private static final double LARGE = 0.2;

    private static final double VISIBLE_GATHER = 1.1;
    private static final double VISIBLE_REDUCTION = 1.2;

    @Override
    public void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException {
        if (settings.cores() < 2) {
            throw new SkippedException("needs two cores or more, a rank each");
        }
        MpiProgram program = MpiProgram.compile(settings.folder());
        new Rows(item, settings, sink, program, settings.cores()).run(item.equals(FUSED));
    }

    /** What all rows have in common. */
    private record Rows(String item, Settings settings, Sink sink, MpiProgram program, int ranks) {

        /** Measures one row or more, with the C program or without it. */
        private interface Measured {
            void run() throws IOException, InterruptedException;
        }

        void run(boolean gather) throws IOException, InterruptedException {
            boolean quick = settings.quick();
            if (gather) {
                int factor = ranks >= MANY_CORES && !quick ? 2 : 1;
                for (Shape base : quick ? QUICK_GATHERS : GATHERS) {
                    Shape shape = new Shape(base.m() * factor, base.n(), base.k());
                    attempt(shape, () -> gather(shape));
                }
                return;
            }
            for (Work work : List.of(Work.REDUCE_SCATTER, Work.ALL_REDUCE)) {
                for (Shape own : quick ? QUICK_REDUCTIONS : REDUCTIONS) {
                    Shape shape = new Shape(own.m(), own.n(), own.k() * ranks);
                    attempt(shape, () -> reduction(work, shape));
                }
            }
            for (Shape shape : quick ? QUICK_NORMS : NORMS) {
                attempt(shape, () -> normed(shape));
            }
            long side = quick ? 256 : 4096;
            for (int rows : quick ? QUICK_FEW_ROWS : FEW_ROWS) {
                Shape shape = new Shape(rows, side, side);
                attempt(shape, () -> fewRows(shape));
            }
        }

        private void attempt(Shape shape, Measured row) throws IOException, InterruptedException {
            try {
                row.run();
            } catch (SteppedProcess.PeerException e) {
                sink.skipped(item, shape + ": " + e.getMessage());
            }
        }

        private void gather(Shape shape) throws IOException, InterruptedException {
            try (Operands operands = Operands.of(shape, DType.FP32);
                    WeftRanks weft =
                            WeftRanks.gathering(ranks, operands, op -> op.computeWorkers(1));
                    MpiProduct peer = program.start(ranks, Work.GATHER, shape)) {
                ProductCheck.require("Weft", operands.a(), operands.b(), weft.product());
                weft.requireBits(weft.product());
                requireSame(shape, MadeUpData.checksum(weft.product()), peer);
                Interleaved.Outcome outcome =
                        settings.measure(
                                List.of(
                                        () -> weft.takeNs(View.PIPELINED),
                                        () -> weft.takeNs(View.COMPUTE_ONLY),
                                        peer::takeNs));
                String name = "%s, %d ranks, %s".formatted(shape, ranks, weft.plan());
                double[] peerNs = peer.latest(outcome.rounds(), Step::productNs);
                double productRatio = Interleaved.medianRatio(peerNs, outcome.values(1));
                Figures figures =
                        new Figures()
                                .with("ranks", ranks)
                                .with("weftProductNs", outcome.medianNs(1))
                                .with("productRatio", productRatio);
                row(name, outcome, 0, peer, "gather", figures);
            }
        }

        /** Ranks as threads, in both orders of sums. */
        private void reduction(Work work, Shape shape) throws IOException, InterruptedException {
            boolean all = work == Work.ALL_REDUCE;
            try (Operands operands = Operands.of(shape, DType.FP32);
                    WeftRanks alone = WeftRanks.gathering(1, operands, op -> op);
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
                        settings.measure(
                                List.of(
                                        () -> whole.takeNs(View.PIPELINED),
                                        () -> byRank.takeNs(View.PIPELINED),
                                        peer::takeNs));
                String what =
                        (all ? "all-reduce " : "scatter ") + shape + ", " + ranks + " ranks, ";
                for (Order order : List.of(Order.WHOLE, Order.BY_RANK)) {
                    boolean first = order == Order.WHOLE;
                    String name = what + order.label() + ", " + (first ? whole : byRank).plan();
                    Figures figures = new Figures().with("ranks", ranks);
                    row(name, outcome, first ? 0 : 1, peer, "reduce", figures);
                }
            }
        }

        /** All-reduce, residual and norm in one call. */
        private void normed(Shape shape) throws IOException, InterruptedException {
            try (Operands operands = Operands.of(shape, DType.FP32);
                    Arena arena = Arena.ofShared();
                    WeftRanks alone = WeftRanks.gathering(1, operands, op -> op)) {
                Matrix residual = Matrix.allocate(arena, DType.FP32, shape.m(), shape.n());
                MadeUpData.fill(residual, MadeUpData.RESIDUAL);
                Matrix weights = Matrix.allocate(arena, DType.FP32, 1, shape.n());
                MadeUpData.fill(weights, MadeUpData.NORM_WEIGHTS);
                Epilogue norm = Epilogue.none().residual(residual).rmsNorm(weights, EPSILON);
                Matrix expected = Matrix.allocate(arena, DType.FP32, shape.m(), shape.n());
                ProductCheck.require("Weft", operands.a(), operands.b(), alone.product());
                norm.apply(List.of(alone.product()), List.of(expected));
                try (WeftRanks weft = WeftRanks.reducing(ranks, operands, true, Order.WHOLE, norm);
                        MpiProduct peer = program.start(ranks, Work.ALL_REDUCE_NORM, shape)) {
                    weft.requireBits(expected);
                    requireSame(shape, MadeUpData.checksum(expected), peer);
                    Interleaved.Outcome outcome =
                            settings.measure(
                                    List.of(() -> weft.takeNs(View.PIPELINED), peer::takeNs));
                    String name =
                            "all-reduce, residual, rmsnorm %s, %d ranks, %s"
                                    .formatted(shape, ranks, weft.plan());
                    row(name, outcome, 0, peer, "reduce", new Figures().with("ranks", ranks));
                }
            }
        }

        /** Two ranks as processes. */
        private void fewRows(Shape shape) throws IOException, InterruptedException {
            try (WeftProcesses weft = new WeftProcesses(FEW_ROWS_RANKS, shape, settings.folder());
                    MpiProduct peer = program.start(FEW_ROWS_RANKS, Work.ALL_REDUCE, shape)) {
                double sum = requireProduct(shape, weft.checksum());
                requireSame(shape, sum, peer);
                Interleaved.Outcome outcome =
                        settings.measure(
                                List.of(() -> weft.takeNs(CALLS), () -> peer.takeNs(CALLS)));
                String name =
                        "all-reduce %s, %d processes, %s"
                                .formatted(shape, FEW_ROWS_RANKS, weft.plan());
                Figures figures =
                        new Figures().with("callsPerTurn", CALLS).with("ranks", FEW_ROWS_RANKS);
                row(name, outcome, 0, peer, "reduce", figures);
            }
        }

        /** The same bits have the same sum. */
        private static double requireProduct(Shape shape, double sum) {
            try (Operands operands = Operands.of(shape, DType.FP32);
                    WeftRanks alone = WeftRanks.gathering(1, operands, op -> op)) {
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

        /**
         * Hands over a row.
         *
         * @param weft which of those that took turns is compared; the C program is the last
         * @param what MPI does beside the product
         */
        private void row(
                String name,
                Interleaved.Outcome outcome,
                int weft,
                MpiProduct peer,
                String what,
                Figures figures) {
            int last = outcome.ns().length - 1;
            double[] productNs = peer.latest(outcome.rounds(), Step::productNs);
            double[] addedNs = peer.latest(outcome.rounds(), Step::addedNs);
            double added = Interleaved.medianRatio(addedNs, productNs);
            double ratio = outcome.speed(weft, last);
            figures.with("rounds", outcome.rounds());
            outcome.put(figures, "weft", weft);
            outcome.put(figures, "peer", last);
            String mpi = what.equals("gather") ? "peerGatherNs" : "peerReduceNs";
            double[] mpiNs = peer.latest(outcome.rounds(), Step::mpiNs);
            double needed = needed(added, figures);
            boolean visible = !what.equals("gather") || added < LARGE || ratio > VISIBLE_GATHER;
            figures.with("peerPinned", peer.pinned())
                    .with(mpi, Quantiles.median(mpiNs))
                    .with("peerProductNs", Quantiles.median(productNs))
                    .with(what + "OverProduct", added)
                    .with("needed", needed)
                    .with("pass", ratio >= needed && visible);
            sink.row(new BenchRow(item, name, program.name(), ratio, figures));
        }

        /** Of a gather, as if it took no time; of a reduction that is large, a visible gain. */
        private static double needed(double added, Figures figures) {
            if (figures.containsKey("productRatio")) {
                return REQUIRED * figures.get("productRatio") * (1 + added);
            }
            return added >= LARGE && !figures.containsKey("callsPerTurn") ? VISIBLE_REDUCTION : 1;
        }
    }
}
