package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Operands;
import dev.weft.bench.measure.Shape;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.io.IOException;
import java.util.List;
import java.util.function.Function;

/** Calls of fewer rows than an operator was prepared for, beside operators for just these rows. */
final class RowsCase implements BenchCase {

    static final String ITEM = "rows";

    private static final int MOST = 2048;
    private static final List<Integer> ROWS = List.of(1, 7, 16, 100, 1000, MOST);
    private static final int SIZE = 2048;
    private static final int QUICK = 128;

    /** At most 1.03 times as long. */
    private static final double NEEDED = 1 / 1.03;

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink) throws IOException, InterruptedException {
        int ranks = Math.min(2, settings.cores());
        int workers = Math.max(1, settings.cores() / ranks);
        measure(
                "gather",
                settings,
                sink,
                operands ->
                        WeftRanks.gathering(
                                ranks, operands, builder -> builder.computeWorkers(workers)));
        measure(
                "all-reduce",
                settings,
                sink,
                operands -> WeftRanks.reducing(ranks, operands, true, Order.WHOLE));
    }

    private static void measure(
            String op, Settings settings, Sink sink, Function<Operands, WeftRanks> prepare)
            throws IOException, InterruptedException {
        int size = settings.quick() ? QUICK : SIZE;
        int most = settings.quick() ? QUICK : MOST;
        try (Operands all = Operands.of(new Shape(most, size, size), DType.FP32);
                WeftRanks prepared = prepare.apply(all)) {
            for (int rows : ROWS) {
                if (rows <= most) {
                    measure(op, rows, all, settings, sink, prepare, prepared);
                }
            }
        }
    }

    private static void measure(
            String op,
            int rows,
            Operands all,
            Settings settings,
            Sink sink,
            Function<Operands, WeftRanks> prepare,
            WeftRanks prepared)
            throws IOException, InterruptedException {
        Operands some = new Operands(all.arena(), all.a().rows(0, rows), all.b());
        try (WeftRanks exact = prepare.apply(some)) {
            prepared.place(some.a());
            prepared.requireBits(exact.product());
            Shards shards = Shards.even(rows, prepared.size());
            Interleaved.Outcome outcome =
                    settings.measure(
                            List.of(
                                    () -> prepared.takeNs(View.PIPELINED, shards),
                                    () -> exact.takeNs(View.PIPELINED)));
            double speed = outcome.speed(0, 1);
            Figures figures = new Figures().with("rounds", outcome.rounds());
            outcome.put(figures, "weft", 0);
            outcome.put(figures, "peer", 1);
            figures.with("needed", NEEDED).with("pass", speed >= NEEDED);
            String name =
                    "%s of %d rows, %d x %d, %d ranks, prepared for %d rows, %s"
                            .formatted(
                                    op,
                                    rows,
                                    all.a().cols(),
                                    all.b().cols(),
                                    prepared.size(),
                                    all.a().rows(),
                                    prepared.plan());
            String peer = "an operator for these rows";
            sink.row(new BenchRow(ITEM, name + " and " + exact.plan(), peer, speed, figures));
        }
    }
}
