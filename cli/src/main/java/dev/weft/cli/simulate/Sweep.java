package dev.weft.cli.simulate;

import dev.weft.cli.console.Progress;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Shards;
import dev.weft.report.CallSpans;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Every combination of shapes, ranks, algorithms and cuts, priced on one machine.
 *
 * @param columnSharded whether ranks share the columns of B
 * @param splits chunks per source; 0 is the machine's own way to cut
 */
record Sweep(
        Machine machine,
        List<Long> m,
        List<Long> k,
        List<Long> n,
        List<Integer> ranks,
        List<PlanWriter> algorithms,
        List<Integer> splits,
        DType aType,
        DType outType,
        boolean columnSharded) {

    /** More would take hours, and nobody reads as many rows. */
    static final long MOST_COMBINATIONS = 10_000;

    /**
     * @param ns predicted; NaN where the machine cannot do it
     * @param sequentialNs the cheapest sequential way of the same problem in the sweep's cuts
     * @param best whether nothing in the sweep does the same problem on as many ranks in less time
     * @param reason why the machine cannot do it; null where it can
     */
    record Row(
            Problem problem,
            PlanWriter algorithm,
            int splits,
            int chunksPerSource,
            long chunkRows,
            int lanes,
            double ns,
            double sequentialNs,
            double limitFraction,
            boolean best,
            String reason) {

        double speedup() {
            return sequentialNs / ns;
        }

        private Row asBest() {
            return new Row(
                    problem,
                    algorithm,
                    splits,
                    chunksPerSource,
                    chunkRows,
                    lanes,
                    ns,
                    sequentialNs,
                    limitFraction,
                    true,
                    reason);
        }
    }

    /** What one group of rows is about. */
    record Problem(long m, long k, long n, int ranks) {}

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
     * @param progress told of every row
     * @param soFar given all rows whenever a problem has got all of its own
     */
    List<Row> rows(Progress progress, Consumer<List<Row>> soFar) {
        List<Row> rows = new ArrayList<>();
        progress.begin("pricing", combinations());
        for (long mm : m) {
            for (long kk : k) {
                for (long nn : n) {
                    for (int r : ranks) {
                        addRows(new Problem(mm, kk, nn, r), rows, progress);
                        soFar.accept(List.copyOf(rows));
                    }
                }
            }
        }
        progress.end();
        return rows;
    }

    private void addRows(Problem problem, List<Row> rows, Progress progress) {
        SimProblem priced = priced(problem);
        double sequentialNs = sequentialNs(priced);
        List<Row> own = new ArrayList<>();
        for (PlanWriter algorithm : algorithms) {
            for (int split : splits) {
                own.add(row(problem, priced, algorithm, split, sequentialNs));
                progress.advance(rows.size() + own.size());
            }
        }
        own.stream()
                .filter(row -> row.reason() == null)
                .min(Comparator.comparingDouble(Row::ns))
                .ifPresent(best -> own.replaceAll(row -> row == best ? row.asBest() : row));
        rows.addAll(own);
    }

    private SimProblem priced(Problem problem) {
        return new SimProblem(
                machine,
                Shards.even(problem.m(), problem.ranks()),
                problem.k(),
                cols(problem),
                aType,
                outType,
                false,
                0,
                Map.of());
    }

    /** Columns of one rank's product. */
    long cols(Problem problem) {
        return columnSharded ? Math.ceilDiv(problem.n(), problem.ranks()) : problem.n();
    }

    /** What the ranks of a row do, span by span. */
    CallSpans spans(Row row) {
        SimProblem problem = priced(row.problem());
        SimCandidate candidate = problem.candidate(row.algorithm(), cut(row.splits()), 0);
        SimTimelines timelines = SimTimelines.of(problem, candidate);
        int ranks = row.problem().ranks();
        return CallSpans.of(timelines.ranks(problem, candidate), ranks, ranks);
    }

    /** NaN where the machine cannot hold as many ranks; each row then has the reason. */
    private double sequentialNs(SimProblem problem) {
        double least = Double.NaN;
        for (int split : splits) {
            try {
                SimCandidate one = problem.candidate(Algorithm.SEQUENTIAL, cut(split), 0);
                double ns = problem.price(one).ns();
                least = Double.isNaN(least) ? ns : Math.min(least, ns);
            } catch (IllegalArgumentException e) {
                System.getLogger("dev.weft")
                        .log(System.Logger.Level.DEBUG, "no sequential call to compare with", e);
            }
        }
        return least;
    }

    private Row row(
            Problem problem,
            SimProblem priced,
            PlanWriter algorithm,
            int split,
            double sequentialNs) {
        try {
            SimCandidate candidate = priced.candidate(algorithm, cut(split), 0);
            SimCandidate.Priced one = priced.price(candidate);
            return new Row(
                    problem,
                    algorithm,
                    split,
                    candidate.chunksPerSource(),
                    candidate.chunkRows(),
                    priced.lanesUsed(candidate),
                    one.ns(),
                    sequentialNs,
                    SimSearch.limitFraction(priced, one),
                    false,
                    null);
        } catch (IllegalArgumentException e) {
            return new Row(
                    problem,
                    algorithm,
                    split,
                    0,
                    0,
                    0,
                    Double.NaN,
                    sequentialNs,
                    Double.NaN,
                    false,
                    e.getMessage());
        }
    }

    private static SimCut cut(int split) {
        return split == 0 ? SimCut.AUTOMATIC : SimCut.bySplits(split);
    }
}
