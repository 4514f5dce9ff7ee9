package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.MadeUpData;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.MpiProduct;
import dev.weft.bench.peers.MpiProduct.Step;
import dev.weft.bench.peers.MpiProduct.Work;
import dev.weft.bench.peers.MpiProgram;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.Epilogue;
import dev.weft.op.GroupedAllGatherMatmul;
import dev.weft.op.GroupedMatmulReduceScatter;
import dev.weft.op.MatmulReduceBuilder;
import dev.weft.op.MatmulReduceScatter;
import dev.weft.plan.Shards;
import dev.weft.plan.group.Experts;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.Routes;
import dev.weft.tune.Quantiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * A layer of experts: gather and grouped product, grouped product and sums, beside a C program that
 * gathers by MPI, multiplies each expert's rows by OpenBLAS and reduces by MPI.
 */
record ExpertsCase() implements BenchCase {

    private static final List<Layer> LAYERS =
            List.of(
                    new Layer(2048, 1408, 1024, 16, 4),
                    new Layer(1024, 704, 1024, 64, 4),
                    new Layer(512, 3584, 2048, 8, 2),
                    new Layer(64, 1408, 1024, 16, 4));

    private static final List<Layer> QUICK =
            List.of(new Layer(64, 48, 32, 8, 2), new Layer(7, 16, 24, 4, 1));

    /** What a layer must gain where MPI takes a visible part of the peer's time. */
    private static final double REQUIRED = 1.2;

    /**
     * @param perRow divides the number of experts
     */
    private record Layer(int rows, int hidden, int width, int experts, int perRow) {

        List<String> words() {
            return List.of(
                    Integer.toString(rows),
                    Integer.toString(hidden),
                    Integer.toString(width),
                    Integer.toString(experts),
                    Integer.toString(perRow));
        }

        @Override
        public String toString() {
            return "%d rows of %d, %d experts of %d, %d for a row"
                    .formatted(rows, width, experts, hidden, perRow);
        }

        /** The same as in the C program. */
        Routes routes(int firstRow, int count) {
            Routes routes = new Routes(count, perRow);
            for (int i = 0; i < count; i++) {
                int row = firstRow + i;
                float at = MadeUpData.value(MadeUpData.ROUTES, row) + 0.5f;
                int first = (int) (at * experts);
                for (int choice = 0; choice < perRow; choice++) {
                    int expert = (first + choice * (experts / perRow)) % experts;
                    long index = (long) row * perRow + choice;
                    float weight = (1 + MadeUpData.value(MadeUpData.ROUTE_WEIGHTS, index)) / perRow;
                    routes.set(i, choice, expert, weight);
                }
            }
            return routes;
        }
    }

    @Override
    public String item() {
        return "experts";
    }

    @Override
    public void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException {
        if (settings.cores() < 2) {
            throw new SkippedException("needs two cores or more, a rank each");
        }
        MpiProgram program = MpiProgram.compile(settings.folder());
        for (Layer layer : settings.quick() ? QUICK : LAYERS) {
            try {
                row(layer, settings, sink, program);
            } catch (SteppedProcess.PeerException e) {
                sink.skipped(item(), layer + ": " + e.getMessage());
            }
        }
    }

    private void row(Layer layer, Settings settings, Sink sink, MpiProgram program)
            throws IOException, InterruptedException {
        int ranks = settings.cores();
        try (Ranks weft = new Ranks(ranks, layer);
                MpiProduct peer = program.start(ranks, Work.EXPERTS, layer.words())) {
            weft.takeNs();
            peer.takeNs();
            // Sums of SwiGLUs are larger than those of plain products, and so are their errors.
            Shape shape = new Shape(layer.rows(), layer.width(), 4L * layer.hidden());
            MadeUpData.requireSame(
                    program.name(), shape, DType.FP32, weft.checksum(), peer.checksum());
            Interleaved.Outcome outcome =
                    settings.measure(List.of(weft::takeNs, () -> peer.takeNs()));
            double[] mpiNs = peer.latest(outcome.rounds(), Step::mpiNs);
            double[] productNs = peer.latest(outcome.rounds(), Step::productNs);
            double ratio = outcome.speed(0, 1);
            Figures figures = new Figures().with("ranks", ranks).with("rounds", outcome.rounds());
            outcome.put(figures, "weft", 0);
            outcome.put(figures, "peer", 1);
            figures.with("peerPinned", peer.pinned())
                    .with("peerMpiNs", Quantiles.median(mpiNs))
                    .with("peerProductNs", Quantiles.median(productNs))
                    .with("needed", REQUIRED)
                    .with("pass", ratio >= REQUIRED);
            String name = "%s, %d ranks, %s".formatted(layer, ranks, weft.plans());
            sink.row(new BenchRow(item(), name, program.name(), ratio, figures));
        }
    }

    /** Ranks of Weft as threads, with one worker each. */
    private static final class Ranks implements AutoCloseable {

        private final World world;
        private final List<Rank> ranks;

        Ranks(int count, Layer layer) {
            world = World.threads(count);
            try {
                ranks = world.call(fabric -> new Rank(fabric, layer));
            } catch (RuntimeException | Error e) {
                world.close();
                throw e;
            }
        }

        /** One layer on all ranks; the time of the slowest. */
        long takeNs() {
            return world.call(fabric -> ranks.get(fabric.rank()).takeNs(fabric)).stream()
                    .mapToLong(Long::longValue)
                    .max()
                    .orElseThrow();
        }

        double checksum() {
            return ranks.stream().mapToDouble(Rank::checksum).sum();
        }

        String plans() {
            Rank first = ranks.getFirst();
            return first.up.plan().name() + ", " + first.down.plan().name();
        }

        @Override
        public void close() {
            try (world) {
                world.run(fabric -> ranks.get(fabric.rank()).close());
            }
        }
    }

    private static final class Rank {

        private final Arena arena = Arena.ofShared();
        private final Matrix shard;
        private final Routes routes;
        private final long firstRow;
        private final GroupedAllGatherMatmul up;
        private final GroupedMatmulReduceScatter down;
        private Matrix latest;

        Rank(Fabric fabric, Layer layer) {
            int rank = fabric.rank();
            Shards rows = Shards.even(layer.rows(), fabric.size());
            Experts experts =
                    Experts.of(Shards.even(layer.experts(), fabric.size()), layer.perRow());
            AllGatherMatmulBuilder builder =
                    AllGatherMatmul.on(fabric)
                            .a(rows, DType.FP32)
                            .epilogue(Epilogue.none().swiglu())
                            .computeWorkers(1);
            MatmulReduceBuilder<MatmulReduceScatter> sums =
                    MatmulReduceScatter.on(fabric)
                            .a(rows, experts.ofRanks(), DType.FP32)
                            .computeWorkers(1);
            try (Arena weights = Arena.ofShared()) {
                int first = experts.first(rank);
                for (int e = first; e < first + experts.count(rank); e++) {
                    int salt = MadeUpData.EXPERTS_BS + 3 * e;
                    builder.b(matrix(weights, salt, layer.width(), layer.hidden()));
                    builder.b(matrix(weights, salt + 1, layer.width(), layer.hidden()));
                    sums.b(matrix(weights, salt + 2, layer.hidden(), layer.width()));
                }
                up = GroupedAllGatherMatmul.prepare(builder, experts);
                down = GroupedMatmulReduceScatter.prepare(sums, experts);
            }
            firstRow = rows.firstRow(rank);
            shard = Matrix.allocate(arena, DType.FP32, rows.rows(rank), layer.width());
            MadeUpData.fill(shard, MadeUpData.A, firstRow);
            routes = layer.routes((int) firstRow, (int) rows.rows(rank));
        }

        private static Matrix matrix(Arena arena, int salt, long rows, long cols) {
            Matrix matrix = Matrix.allocate(arena, DType.FP32, rows, cols);
            MadeUpData.fill(matrix, salt);
            return matrix;
        }

        long takeNs(Fabric fabric) {
            fabric.barrier();
            long startNs = System.nanoTime();
            Matrix hidden = up.call(shard, routes).product();
            latest = down.call(hidden, up.groups()).product();
            return System.nanoTime() - startNs;
        }

        double checksum() {
            return MadeUpData.checksum(latest, firstRow);
        }

        void close() {
            up.close();
            down.close();
            arena.close();
        }
    }
}
