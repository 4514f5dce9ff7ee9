package dev.weft.cli.simulate;

import dev.weft.cli.console.Progress;
import dev.weft.cli.options.OptionValues;
import dev.weft.json.JsonField;
import dev.weft.plan.PlanException;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.report.CallSpans;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;

/**
 * Every combination of shapes, ranks, algorithms and cuts, priced on one machine.
 *
 * @param columnSharded whether ranks share the columns of B
 * @param splits chunks per source; 0 for the machine's default
 */
record Sweep(
        Machine machine,
        List<Long> m,
        List<Long> k,
        List<Long> n,
        List<Integer> ranks,
        List<String> algorithms,
        List<Integer> splits,
        DType aType,
        DType outType,
        boolean columnSharded,
        String op) {

    /** More would take hours, and nobody reads that many rows. */
    static final long MOST_COMBINATIONS = 10_000;

    /**
     * A row as docs/sweep-record.md has it.
     *
     * @param splits null for the machine's default
     * @param price null if the machine cannot do it
     * @param best whether nothing in the sweep is faster for the same problem on the same number of
     *     ranks; null if the machine cannot do it
     * @param reason why the machine cannot do it; null if it can
     */
    record Row(
            @JsonField(flat = true) Shape shape,
            String algorithm,
            Integer splits,
            @JsonField(flat = true) Price price,
            @JsonField(omitted = true) Boolean best,
            String reason) {

        private Row asBest() {
            return new Row(shape, algorithm, splits, price, true, null);
        }
    }

    /**
     * How a row's plan is cut, and its time on the machine.
     *
     * @param chunks per source
     * @param sequentialUs the cheapest sequential way of the same problem in the sweep's cuts; NaN
     *     if there is none
     */
    record Price(
            int chunks,
            long chunkRows,
            int lanes,
            double predictedUs,
            double sequentialUs,
            double speedup,
            double limitFraction) {}

    /** What one group of rows is about. */
    record Shape(long m, long k, long n, int ranks) {

        /** Columns of one rank's product. */
        long cols(boolean columnSharded) {
            return columnSharded ? Math.ceilDiv(n, ranks) : n;
        }

        Problem problem(boolean columnSharded, DType aType, DType outType) {
            return Problem.of(Shards.even(m, ranks), k, cols(columnSharded), aType, outType);
        }
    }

    /** How many rows there will be. */
    long combinations() {
        long combinations = 1;
        for (List<?> list : List.of(m, k, n, ranks, algorithms, splits)) {
            combinations = Math.multiplyExact(combinations, list.size());
        }
        return combinations;
    }

    /**
     * In the order of the lists.
     *
     * @param progress advances with every row
     * @param soFar receives all rows so far whenever a problem is complete
     */
    List<Row> rows(Progress progress, Consumer<List<Row>> soFar) {
        List<Row> rows = new ArrayList<>();
        progress.begin("pricing", combinations());
        for (long mm : m) {
            for (long kk : k) {
                for (long nn : n) {
                    for (int r : ranks) {
                        addRows(new Shape(mm, kk, nn, r), rows, progress);
                        soFar.accept(List.copyOf(rows));
                    }
                }
            }
        }
        progress.end();
        return rows;
    }

    private void addRows(Shape shape, List<Row> rows, Progress progress) {
        PlanSearch search = search(shape);
        double sequentialNs = sequentialNs(search);
        List<Row> own = new ArrayList<>();
        for (String algorithm : algorithms) {
            for (int split : splits) {
                own.add(row(shape, search, algorithm, split, sequentialNs));
                progress.advance(rows.size() + own.size());
            }
        }
        own.stream()
                .filter(row -> row.price() != null)
                .min(Comparator.comparingDouble(row -> row.price().predictedUs()))
                .ifPresent(best -> own.replaceAll(row -> row == best ? row.asBest() : row));
        rows.addAll(own);
    }

    private PlanSearch search(Shape shape) {
        Problem problem = shape.problem(columnSharded, aType, outType);
        // Every algorithm sums in its own order.
        return SimRules.search(machine, SimRules.summed(problem, op, Order.WHOLE));
    }

    /** What the ranks of a row do, span by span. */
    CallSpans spans(Row row) {
        PlanSearch search = search(row.shape());
        int split = row.splits() == null ? 0 : row.splits();
        Candidate candidate = candidate(search, row.algorithm(), split);
        int ranks = row.shape().ranks();
        return CallSpans.of(SimTimelines.of(search, candidate).ranks(), ranks, ranks);
    }

    /** NaN if the machine cannot hold that many ranks; each row then has the reason. */
    private double sequentialNs(PlanSearch search) {
        double least = Double.NaN;
        for (int split : splits) {
            try {
                Candidate one = search.candidate(search.sequential(), cut(split));
                double ns = search.priced(one).predictedNs();
                least = Double.isNaN(least) ? ns : Math.min(least, ns);
            } catch (IllegalArgumentException e) {
                System.getLogger("dev.weft")
                        .log(System.Logger.Level.DEBUG, "no sequential call to compare with", e);
            }
        }
        return least;
    }

    private Row row(
            Shape shape, PlanSearch search, String algorithm, int split, double sequentialNs) {
        Integer splitsGiven = split == 0 ? null : split;
        try {
            Candidate one = search.priced(candidate(search, algorithm, split));
            Price price =
                    new Price(
                            one.chunksPerSource(),
                            search.chunkRows(one),
                            search.lanesUsed(one),
                            one.predictedNs() / 1e3,
                            sequentialNs / 1e3,
                            sequentialNs / one.predictedNs(),
                            PlanAnswer.limitFraction(search, one));
            return new Row(shape, algorithm, splitsGiven, price, false, null);
        } catch (PlanException e) {
            // The algorithm itself is wrong, not only this row of it.
            throw e;
        } catch (IllegalArgumentException e) {
            return new Row(shape, algorithm, splitsGiven, null, null, e.getMessage());
        }
    }

    private Candidate candidate(PlanSearch search, String algorithm, int split) {
        return search.candidate(OptionValues.writer(op, algorithm), cut(split));
    }

    private static Cut cut(int split) {
        return new Cut(0, split, 0);
    }
}
