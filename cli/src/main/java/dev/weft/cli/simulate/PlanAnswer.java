package dev.weft.cli.simulate;

import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.PlanSearch.Budget;
import dev.weft.sim.Machine;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * What a machine model says of a problem: the best way for each number of ranks, where overlap
 * stops paying for the fastest of them, and what a better machine would gain.
 *
 * @param choices one for each number of ranks that the machine can have, in the order given
 * @param byRows gains for other numbers of rows, fewest first
 * @param byLinks gains with links of other speeds, slowest first
 * @param refused why the machine cannot have a number of ranks, one line each
 */
record PlanAnswer(
        List<Choice> choices,
        Choice best,
        List<Gain> byRows,
        List<Gain> byLinks,
        List<Upgrade> upgrades,
        List<String> refused) {

    /** Overlap pays if it is at least this much faster than a call without it. */
    static final double PAYS = 1.03;

    /** Rows and links are doubled and halved this many times at most. */
    private static final int FEW_RANKS = 64;

    private static final int MOST_STEPS = 6;

    /**
     * The best way for one number of ranks.
     *
     * @param unoverlappedNs the best gather, and then the product
     * @param limitFraction the larger of only the product and only the gather, over the call
     * @param efficiency only the product, over the call
     */
    record Choice(
            PlanSearch search,
            Candidate cheapest,
            double unoverlappedNs,
            double limitFraction,
            double efficiency) {

        int ranks() {
            return search.problem().shards().ranks();
        }

        double speedup() {
            return unoverlappedNs / cheapest.predictedNs();
        }
    }

    /**
     * @param at rows of A, or the factor by which links are faster
     * @param speedup the speedup of the best overlapped call over the best one without overlap
     */
    record Gain(double at, double speedup) {

        boolean pays() {
            return speedup >= PAYS;
        }
    }

    /**
     * @param predictedUs the time of the cheapest call on a machine that is twice as good in one
     *     thing
     */
    record Upgrade(String what, double predictedUs, double speedup) {}

    /**
     * @param searches one for each number of ranks
     */
    static PlanAnswer of(List<PlanSearch> searches, Progress progress) {
        List<Choice> choices = new ArrayList<>();
        List<String> refused = new ArrayList<>();
        progress.begin("pricing", searches.size());
        for (PlanSearch search : searches) {
            try {
                choices.add(choice(search));
            } catch (IllegalArgumentException e) {
                refused.add(e.getMessage());
            }
            progress.advance(choices.size() + refused.size());
        }
        progress.end();
        Choice best =
                choices.stream()
                        .min(Comparator.comparingDouble(choice -> choice.cheapest().predictedNs()))
                        .orElseThrow(() -> new UsageException(refused.getFirst()));
        return new PlanAnswer(
                List.copyOf(choices),
                best,
                byRows(best.search()),
                byLinks(best.search()),
                upgrades(best),
                List.copyOf(refused));
    }

    private static Choice choice(PlanSearch search) {
        List<Candidate> candidates = search.candidates(Budget.THOROUGH);
        Candidate cheapest = candidates.getFirst();
        return new Choice(
                search,
                cheapest,
                unoverlappedNs(search, candidates),
                limitFraction(search, cheapest),
                search.price(cheapest, View.COMPUTE_ONLY).ns() / cheapest.predictedNs());
    }

    /**
     * The least time without any overlap: sequential, or only the gather and then only the product
     * of another algorithm. Links may carry another algorithm's gather better than sequential's:
     * overlap gets no credit for that.
     */
    private static double unoverlappedNs(PlanSearch search, List<Candidate> candidates) {
        double least = Double.POSITIVE_INFINITY;
        if (search.problem().sums() != null) {
            // It may sum in another order, and then is no candidate.
            least = search.sequential(Budget.THOROUGH).predictedNs();
        }
        for (Candidate one : candidates) {
            if (!search.overlaps(one)) {
                least = Math.min(least, one.predictedNs());
            }
            if (!PlanSearch.isDirect(one.algorithm())) {
                double gather = search.price(one, View.COMM_ONLY).arrivedNs();
                double product = search.price(one, View.COMPUTE_ONLY).ns();
                least = Math.min(least, gather + product);
            }
        }
        return least;
    }

    /**
     * The larger of only the product and only the transfers, over the whole call: 1 is perfect. The
     * transfers alone all start at once, and may then get in each other's way.
     */
    static double limitFraction(PlanSearch search, Candidate one) {
        double product = search.price(one, View.COMPUTE_ONLY).ns();
        double gather = search.price(one, View.COMM_ONLY).ns();
        return Math.min(1, Math.max(product, gather) / one.predictedNs());
    }

    private static List<Gain> byRows(PlanSearch search) {
        long m = search.problem().shards().totalRows();
        List<Gain> gains = new ArrayList<>(List.of(withRows(search, m)));
        boolean pays = gains.getFirst().pays();
        // Fewer rows have more overhead: if overlap stops paying, it does so there.
        int ranks = search.problem().shards().ranks();
        for (long rows = m / 2; pays && isQuick(rows, ranks); rows /= 2) {
            gains.addFirst(withRows(search, rows));
            pays = gains.getFirst().pays();
        }
        for (int step = 1; m > 0 && !gains.getLast().pays() && step <= MOST_STEPS; step++) {
            if (m << step > ProblemOptions.MOST_SIZE) {
                break;
            }
            gains.addLast(withRows(search, m << step));
        }
        return List.copyOf(gains);
    }

    /** Many ranks are simulated quickly only if their shards are equal. */
    private static boolean isQuick(long rows, int ranks) {
        return rows >= ranks && (rows % ranks == 0 || ranks <= FEW_RANKS);
    }

    private static List<Gain> byLinks(PlanSearch search) {
        List<Gain> gains = new ArrayList<>(List.of(withLinks(search, 1)));
        for (int step = 1; step <= MOST_STEPS; step++) {
            if (step == 1 || gains.getFirst().pays()) {
                gains.addFirst(withLinks(search, 1.0 / (1 << step)));
            }
            if (step == 1 || gains.getLast().pays()) {
                gains.addLast(withLinks(search, 1 << step));
            }
        }
        return List.copyOf(gains);
    }

    private static Gain withRows(PlanSearch search, long rows) {
        var other = SimRules.search(search.machine(), search.problem().withRows(rows));
        return new Gain(rows, overlapGain(other));
    }

    private static Gain withLinks(PlanSearch search, double factor) {
        Machine machine = search.machine().withLinksFaster(factor);
        return new Gain(factor, overlapGain(new PlanSearch(machine, search.problem())));
    }

    /** The gain of the best overlapped call; at most 1 if there is nothing to overlap. */
    private static double overlapGain(PlanSearch search) {
        List<Candidate> candidates = search.candidates(Budget.THOROUGH);
        Candidate best =
                candidates.stream()
                        .filter(search::overlaps)
                        .findFirst()
                        .orElse(candidates.getFirst());
        return unoverlappedNs(search, candidates) / best.predictedNs();
    }

    private static List<Upgrade> upgrades(Choice best) {
        Machine machine = best.search().machine();
        return List.of(
                upgrade("links", best, machine.withLinksFaster(2)),
                upgrade("on-chip memory", best, machine.withMoreOnChip(2)),
                upgrade("engine", best, machine.withEngineFaster(2)));
    }

    private static Upgrade upgrade(String what, Choice best, Machine machine) {
        PlanSearch upgraded = new PlanSearch(machine, best.search().problem());
        double ns = upgraded.candidates(Budget.THOROUGH).getFirst().predictedNs();
        return new Upgrade(what, ns / 1e3, best.cheapest().predictedNs() / ns);
    }
}
