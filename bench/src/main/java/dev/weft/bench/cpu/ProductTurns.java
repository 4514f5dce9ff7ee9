package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.MadeUpData;
import dev.weft.bench.measure.Operands;
import dev.weft.bench.measure.ProductCheck;
import dev.weft.bench.measure.Resources;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.peers.JavaProduct;
import dev.weft.bench.peers.OpenBlasLibrary;
import dev.weft.bench.peers.Programs;
import dev.weft.bench.peers.PythonProduct;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Everything that computes one product of one shape with one number of threads, taking turns. Weft
 * in fp32 comes first; all others are checked against float64 or its product. Used by one thread.
 */
final class ProductTurns implements AutoCloseable {

    private static final int NONE = -1;

    private final Shape shape;
    private final int threads;
    private final Resources opened = new Resources();
    private final List<Interleaved.Turn> turns = new ArrayList<>();
    private final List<Comparison> comparisons = new ArrayList<>();
    private final Map<DType, Weft> weft = new EnumMap<>(DType.class);
    private FmaPeak peak;
    private int peakTurn = NONE;
    private ReadRate read;
    private int readTurn = NONE;

    /** Weft with inputs of one type. */
    private record Weft(Operands operands, WeftRanks ranks, int turn) {}

    /** A row to come: one turn's speed over another's. */
    private record Comparison(DType type, String peer, int faster, int other) {}

    ProductTurns(Shape shape, int threads) {
        this.shape = shape;
        this.threads = threads;
    }

    /** Weft itself; with narrow inputs as a row against Weft in fp32. */
    void addWeft(DType type) {
        Operands own = opened.add(Operands.of(shape, type));
        WeftRanks ranks = opened.add(WeftRanks.gathering(1, own, op -> op.computeWorkers(threads)));
        ProductCheck.require("Weft " + type.label(), own.a(), own.b(), ranks.product());
        if (type != DType.FP32) {
            comparisons.add(
                    new Comparison(type, "weft fp32", turns.size(), weft.get(DType.FP32).turn));
        }
        weft.put(type, new Weft(own, ranks, turns.size()));
        turns.add(() -> ranks.takeNs(View.PIPELINED));
    }

    void addOpenBlas(OpenBlasLibrary library) {
        Weft fp32 = weft.get(DType.FP32);
        OpenBlasLibrary.Product product =
                opened.add(library.new Product(fp32.operands.a(), fp32.operands.b(), threads));
        comparisons.add(new Comparison(DType.FP32, library.name(), fp32.turn, turns.size()));
        turns.add(product::takeNs);
    }

    /** Beside Weft with inputs of the same type, which was added before. */
    void addPython(String module, DType type, Path folder)
            throws IOException, InterruptedException {
        Path program = Programs.source(PythonProduct.PROGRAM, folder);
        PythonProduct product =
                opened.add(new PythonProduct(module, program, folder, shape, type, threads));
        product.takeNs();
        Weft own = weft.get(type);
        MadeUpData.requireSame(
                product.name(),
                shape,
                type,
                MadeUpData.checksum(own.ranks.product()),
                product.checksum());
        comparisons.add(new Comparison(type, product.name(), own.turn, turns.size()));
        turns.add(product::takeNs);
    }

    void addMkl(Path folder) throws IOException, InterruptedException {
        Weft fp32 = weft.get(DType.FP32);
        Operands operands = fp32.operands;
        JavaProduct product =
                opened.add(
                        new JavaProduct(
                                JavaProduct.Library.MKL,
                                folder,
                                operands.a(),
                                operands.b().data(),
                                shape,
                                DType.FP32.label(),
                                threads));
        product.takeNs();
        try (Arena arena = Arena.ofConfined()) {
            ProductCheck.require(
                    product.name(), operands.a(), operands.b(), product.product(arena));
        }
        comparisons.add(new Comparison(DType.FP32, product.name(), fp32.turn, turns.size()));
        turns.add(product::takeNs);
    }

    /** What the cores could do at most, measured between the others. */
    void addPeak() {
        peak = opened.add(new FmaPeak(threads));
        peakTurn = turns.size();
        turns.add(peak::takeNs);
    }

    /** How fast the larger of A and B is read in fp32, measured between the others. */
    void addRead() {
        read = opened.add(new ReadRate(threads, largerElements() * Float.BYTES));
        readTurn = turns.size();
        turns.add(read::takeNs);
    }

    private long largerElements() {
        return shape.k() * Math.max(shape.m(), shape.n());
    }

    /** Hands over all rows; what the cores could do at most in GFLOP/s, or 0 where not measured. */
    double measure(BenchCase.Settings settings, String item, BenchCase.Sink sink)
            throws IOException, InterruptedException {
        Interleaved.Outcome outcome = settings.measure(turns);
        String name = shape + ", " + threads + (threads == 1 ? " thread" : " threads");
        for (Comparison row : comparisons) {
            sink.row(
                    new BenchRow(
                            item,
                            row.type.label() + " " + name,
                            row.peer,
                            outcome.speed(row.faster, row.other),
                            figures(outcome, row)));
        }
        return peakTurn == NONE ? 0 : peakGflops(outcome);
    }

    private double peakGflops(Interleaved.Outcome outcome) {
        return peak.amount() / outcome.medianNs(peakTurn);
    }

    private Map<String, Double> figures(Interleaved.Outcome outcome, Comparison row) {
        double gflops = shape.gflops(outcome.medianNs(row.faster));
        Figures figures = new Figures().with("threads", threads).with("rounds", outcome.rounds());
        outcome.put(figures, "weft", row.faster);
        outcome.put(figures, "peer", row.other);
        figures.with("weftGflops", gflops)
                .with("peerGflops", shape.gflops(outcome.medianNs(row.other)));
        if (peakTurn != NONE) {
            figures.with("fmaPeakGflops", peakGflops(outcome))
                    .with("peakFraction", gflops / peakGflops(outcome));
        }
        if (readTurn != NONE) {
            double rate = read.amount() / outcome.medianNs(readTurn);
            double bytes = (double) largerElements() * row.type.bytes();
            figures.with("readGbPerS", rate)
                    .with("readFraction", bytes / outcome.medianNs(row.faster) / rate);
        }
        return figures;
    }

    @Override
    public void close() {
        opened.close();
    }
}
