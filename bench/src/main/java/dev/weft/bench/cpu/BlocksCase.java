package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.gemm.RowQuantizer;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
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
import java.util.List;

/**
 * A few rows times a B in blocks of 8 and 4 bits, beside the same B in fp32, and beside reading as
 * many bytes: with one row, a product can be no faster than that.
 */
final class BlocksCase implements BenchCase {

    static final String ITEM = "blocks";

    private static final int[] ROWS = {1, 16, 128};
    private static final long K = 4096;
    private static final long N = 16384;
    private static final long QUICK = 256;

    /** Of the bandwidth of reading, with one row. */
    private static final double NEEDED = 0.9;

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink) throws IOException, InterruptedException {
        long k = settings.quick() ? QUICK : K;
        long n = settings.quick() ? QUICK : N;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(1, Duration.ofMinutes(1))) {
            Matrix b = Matrix.allocate(arena, DType.FP32, n, k);
            new NormalData(1, 1).fill(b);
            Fabric fabric = world.call(rank -> rank).getFirst();
            try (ReadRate reads =
                    new ReadRate(settings.cores(), settings.quick() ? 1 << 20 : 96L << 20)) {
                for (BlockType type : BlockType.MULTIPLIED) {
                    measure(fabric, b, type, reads, settings, sink, arena);
                }
            }
        }
    }

    private static void measure(
            Fabric fabric,
            Matrix b,
            BlockType type,
            ReadRate reads,
            Settings settings,
            Sink sink,
            Arena arena)
            throws IOException, InterruptedException {
        QuantizedMatrix blocks = QuantizedMatrix.ofB(arena, b, true, type);
        Matrix values = blocks.dequantize(arena);
        try (Weights packed = Weights.pack(fabric, blocks, DType.FP32, "auto");
                Weights wide = Weights.pack(fabric, values, true, DType.FP32, "portable")) {
            for (int rows : ROWS) {
                try (AllGatherMatmul weft = prepared(fabric, rows, packed, settings);
                        AllGatherMatmul fp32 = prepared(fabric, rows, wide, settings)) {
                    Matrix a = Matrix.allocate(arena, DType.FP32, rows, b.cols());
                    new NormalData(2, rows).fill(a);
                    place(fp32, a);
                    place(weft, a);
                    Matrix c = weft.lastResult().product();
                    ProductCheck.require(
                            "Weft " + type.label(),
                            RowQuantizer.values(a, arena),
                            turned(values, arena),
                            c);
                    add(rows, weft, fp32, packed.bytes(), type, reads, settings, sink, b);
                }
            }
        }
    }

    /** From now on every call finds its input in place, of which there are two in turn. */
    private static void place(AllGatherMatmul operator, Matrix a) {
        for (int place = 0; place < 2; place++) {
            operator.nextShard().copyFrom(a);
            operator.callInPlace(View.PIPELINED);
        }
    }

    private static void add(
            int rows,
            AllGatherMatmul weft,
            AllGatherMatmul fp32,
            long bytes,
            BlockType type,
            ReadRate reads,
            Settings settings,
            Sink sink,
            Matrix b)
            throws IOException, InterruptedException {
        Interleaved.Outcome outcome =
                settings.measure(
                        List.of(
                                () -> weft.callInPlace(View.PIPELINED).timeline().elapsedNs(),
                                () -> fp32.callInPlace(View.PIPELINED).timeline().elapsedNs(),
                                reads::takeNs));
        double share = outcome.speed(0, 2) * bytes / reads.amount();
        Figures figures = new Figures().with("rounds", outcome.rounds());
        outcome.put(figures, "weft", 0);
        outcome.put(figures, "peer", 1);
        figures.with("threads", settings.cores())
                .with("weightsGBps", bytes / outcome.medianNs(0))
                .with("readGBps", reads.amount() / outcome.medianNs(2))
                .with("readFraction", share);
        if (rows == 1) {
            figures.with("needed", NEEDED).with("pass", share >= NEEDED);
        }
        String name =
                "%s, %d x %d x %d, %d threads"
                        .formatted(type.label(), rows, b.rows(), b.cols(), settings.cores());
        sink.row(new BenchRow(ITEM, name, "weft fp32", outcome.speed(0, 1), figures));
    }

    private static AllGatherMatmul prepared(
            Fabric fabric, int rows, Weights weights, Settings settings) {
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric)
                        .a(Shards.of(rows), DType.FP32)
                        .b(weights)
                        .pinWorkers()
                        .algorithm(Algorithm.SEQUENTIAL)
                        .computeWorkers(settings.cores());
        return builder.prepare();
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
}
