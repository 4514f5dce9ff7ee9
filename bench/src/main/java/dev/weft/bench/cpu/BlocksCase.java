package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.bench.measure.Resources;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.peers.JavaProduct;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.gemm.RowQuantizer;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Weights;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A few rows times a B in blocks of 8 and 4 bits, from one thread to all cores: beside the same B
 * in fp32, llama.cpp and ONNX Runtime, and beside reading as many bytes: with one row, a product
 * can be no faster than that.
 */
final class BlocksCase implements BenchCase {

    static final String ITEM = "blocks";

    private static final int[] ROWS = {1, 16, 128};
    private static final int[] QUICK_ROWS = {16};
    private static final long K = 4096;
    private static final long N = 16384;
    private static final long QUICK = 256;

    /** Of the bandwidth of reading, with one row. */
    private static final double NEEDED = 0.9;

    /** Part of the norm: A's rows are rounded to 8 bits, which costs two right products 0.008. */
    private static final double SAME = 0.02;

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink) throws IOException, InterruptedException {
        List<JavaProduct.Library> peers = new ArrayList<>();
        for (var library : List.of(JavaProduct.Library.LLAMA, JavaProduct.Library.ONNX)) {
            Optional<String> why = library.unavailable();
            why.ifPresentOrElse(reason -> sink.skipped(ITEM, reason), () -> peers.add(library));
        }
        long k = settings.quick() ? QUICK : K;
        long n = settings.quick() ? QUICK : N;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(1, Duration.ofMinutes(1))) {
            Matrix b = Matrix.allocate(arena, DType.FP32, n, k);
            new NormalData(1, 1).fill(b);
            Fabric fabric = world.call(rank -> rank).getFirst();
            for (BlockType type : BlockType.MULTIPLIED) {
                measure(fabric, b, type, peers, settings, sink);
            }
        }
    }

    private static void measure(
            Fabric fabric,
            Matrix b,
            BlockType type,
            List<JavaProduct.Library> peers,
            Settings settings,
            Sink sink)
            throws IOException, InterruptedException {
        try (Arena arena = Arena.ofShared()) {
            QuantizedMatrix blocks = QuantizedMatrix.ofB(arena, b, true, type);
            Matrix values = blocks.dequantize(arena);
            Matrix turned = turned(values, arena);
            try (Weights packed = Weights.pack(fabric, blocks, DType.FP32, "auto");
                    Weights wide = Weights.pack(fabric, values, true, DType.FP32, "portable")) {
                boolean quick = settings.quick();
                int cores = settings.cores();
                for (int threads : quick ? List.of(cores) : ProductCase.threadCounts(cores)) {
                    for (int rows : quick ? QUICK_ROWS : ROWS) {
                        Matrix a = Matrix.allocate(arena, DType.FP32, rows, b.cols());
                        new NormalData(2, rows).fill(a);
                        try (Turns turns = new Turns(type, a, blocks, threads, settings)) {
                            turns.addWeft(fabric, packed, wide, turned);
                            for (JavaProduct.Library peer : peers) {
                                turns.addPeer(peer, sink);
                            }
                            turns.measure(packed.bytes(), sink);
                        }
                    }
                }
            }
        }
    }

    private static Matrix turned(Matrix values, Arena arena) {
        Matrix turned = Matrix.allocate(arena, DType.FP32, values.cols(), values.rows());
        for (long row = 0; row < values.rows(); row++) {
            for (long col = 0; col < values.cols(); col++) {
                turned.set(col, row, values.get(row, col));
            }
        }
        return turned;
    }

    /** All that multiply the same rows. Weft comes first, then Weft in fp32, then reading. */
    private static final class Turns implements AutoCloseable {

        private static final int WEFT = 0;
        private static final int READ = 2;

        private final BlockType type;
        private final Matrix a;
        private final QuantizedMatrix blocks;
        private final int threads;
        private final Settings settings;
        private final Resources opened = new Resources();
        private final List<Interleaved.Turn> turns = new ArrayList<>();
        private final List<String> names = new ArrayList<>();
        private ReadRate reads;
        private Matrix product;

        Turns(BlockType type, Matrix a, QuantizedMatrix blocks, int threads, Settings settings) {
            this.type = type;
            this.a = a;
            this.blocks = blocks;
            this.threads = threads;
            this.settings = settings;
        }

        private void add(String name, Interleaved.Turn turn) {
            names.add(name);
            turns.add(turn);
        }

        void addWeft(Fabric fabric, Weights packed, Weights wide, Matrix turned) {
            AllGatherMatmul weft = opened.add(prepared(fabric, packed));
            AllGatherMatmul fp32 = opened.add(prepared(fabric, wide));
            place(fp32);
            place(weft);
            product = weft.lastResult().product();
            try (Arena arena = Arena.ofConfined()) {
                Matrix numbers = RowQuantizer.values(a, arena);
                ProductCheck.require("Weft " + type.label(), numbers, turned, product);
            }
            add("weft", () -> weft.callInPlace(View.PIPELINED).timeline().elapsedNs());
            add("weft fp32", () -> fp32.callInPlace(View.PIPELINED).timeline().elapsedNs());
            reads = opened.add(new ReadRate(threads, settings.quick() ? 1 << 20 : 96L << 20));
            add("reading", reads::takeNs);
        }

        private AllGatherMatmul prepared(Fabric fabric, Weights weights) {
            return AllGatherMatmul.on(fabric)
                    .a(Shards.of(a.rows()), DType.FP32)
                    .b(weights)
                    .pinWorkers()
                    .algorithm(Algorithm.SEQUENTIAL)
                    .computeWorkers(threads)
                    .prepare();
        }

        /** From now on every call finds its input in place, of which there are two in turn. */
        private void place(AllGatherMatmul operator) {
            for (int place = 0; place < 2; place++) {
                operator.nextShard().copyFrom(a);
                operator.callInPlace(View.PIPELINED);
            }
        }

        void addPeer(JavaProduct.Library library, Sink sink)
                throws IOException, InterruptedException {
            if (!library.multiplies(type.label())) {
                return;
            }
            Shape shape = new Shape(a.rows(), blocks.rows(), blocks.cols());
            try (Arena arena = Arena.ofConfined()) {
                JavaProduct peer =
                        opened.add(
                                new JavaProduct(
                                        library,
                                        settings.folder(),
                                        a,
                                        blocks.data(),
                                        shape,
                                        type.label(),
                                        threads));
                peer.takeNs();
                requireSame(peer.name(), peer.product(arena));
                add(peer.name(), peer::takeNs);
            } catch (SteppedProcess.PeerException e) {
                sink.skipped(ITEM, e.getMessage());
            }
        }

        private void requireSame(String who, Matrix other) {
            double norm = 0;
            double off = 0;
            for (long row = 0; row < other.rows(); row++) {
                for (long col = 0; col < other.cols(); col++) {
                    double difference = other.get(row, col) - product.get(row, col);
                    off += difference * difference;
                    norm += (double) product.get(row, col) * product.get(row, col);
                }
            }
            if (!(off <= SAME * SAME * norm)) {
                throw new IllegalStateException(
                        "%s and Weft differ by %s of the norm of %s with %s rows, expected %s"
                                .formatted(
                                        who, Math.sqrt(off / norm), type.label(), a.rows(), SAME));
            }
        }

        /**
         * Hands over a row for each peer.
         *
         * @param bytes of the packed weight
         */
        void measure(long bytes, Sink sink) throws IOException, InterruptedException {
            Interleaved.Outcome outcome = settings.measure(turns);
            double share = outcome.speed(WEFT, READ) * bytes / reads.amount();
            for (int turn = 1; turn < turns.size(); turn++) {
                if (turn != READ) {
                    add(outcome, turn, bytes, share, sink);
                }
            }
        }

        private void add(
                Interleaved.Outcome outcome, int peer, long bytes, double share, Sink sink) {
            Figures figures = new Figures().with("rounds", outcome.rounds());
            outcome.put(figures, "weft", WEFT);
            outcome.put(figures, "peer", peer);
            figures.with("threads", threads)
                    .with("weightsGBps", bytes / outcome.medianNs(WEFT))
                    .with("readGBps", reads.amount() / outcome.medianNs(READ))
                    .with("readFraction", share);
            double ratio = outcome.speed(WEFT, peer);
            if (peer > READ) {
                figures.with("needed", 1).with("pass", ratio >= 1);
            } else if (a.rows() == 1) {
                figures.with("needed", NEEDED).with("pass", share >= NEEDED);
            }
            String name =
                    "%s, %d x %d x %d, %d thread%s"
                            .formatted(
                                    type.label(),
                                    a.rows(),
                                    blocks.cols(),
                                    blocks.rows(),
                                    threads,
                                    threads == 1 ? "" : "s");
            sink.row(new BenchRow(ITEM, name, names.get(peer), ratio, figures));
        }

        @Override
        public void close() {
            opened.close();
        }
    }
}
