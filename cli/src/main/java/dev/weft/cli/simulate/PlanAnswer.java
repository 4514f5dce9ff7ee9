package dev.weft.cli.simulate;

import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.sim.Machine;
import dev.weft.sim.Part;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.DoubleFunction;
import java.util.function.LongFunction;

/**
 * What a machine model says of a problem: the best way for each number of ranks, where overlap
 * stops paying for the fastest of them, and what a better machine would buy.
 *
 * @param choices one for each number of ranks that the machine can have, in the order asked for
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

    /** Overlap pays where it is this much faster than a call without, at least. */
    static final double PAYS = 1.03;

    /** Rows and links are doubled and halved this many times at most. */
    private static final int FEW_RANKS = 64;

    private static final int MOST_STEPS = 6;

    /**
     * The best way for one number of ranks.
     *
     * @param unoverlappedNs the best gather, and then the product
     * @param limitFraction the larger of product alone and gather alone, over the call
     * @param efficiency the product alone, over the call
     */
    record Choice(
            SimProblem problem,
            SimCandidate.Priced cheapest,
            double unoverlappedNs,
            double limitFraction,
            double efficiency) {

        int ranks() {
            return problem.shards().ranks();
        }

        double speedup() {
            return unoverlappedNs / cheapest.ns();
        }
    }

    /**
     * @param at rows of A, or how many times as fast the links are
     * @param speedup of the best overlapped call over the best one without overlap
     */
    record Gain(double at, double speedup) {

        boolean pays() {
            return speedup >= PAYS;
        }
    }

    /**
     * @param ns of the cheapest call on a machine that is twice as good in one thing
     */
    record Upgrade(String what, double ns, double speedup) {}

    /**
     * @param problems one for each number of ranks
     */
    static PlanAnswer of(List<SimProblem> problems, Progress progress) {
        List<Choice> choices = new ArrayList<>();
        List<String> refused = new ArrayList<>();
        progress.begin("pricing", problems.size());
        for (SimProblem problem : problems) {
            try {
                choices.add(choice(problem));
            } catch (IllegalArgumentException e) {
                refused.add(e.getMessage());
            }
            progress.advance(choices.size() + refused.size());
        }
        progress.end();
        Choice best =
                choices.stream()
                        .min(Comparator.comparingDouble(choice -> choice.cheapest().ns()))
                        .orElseThrow(() -> new UsageException(refused.getFirst()));
        SimProblem problem = best.problem();
        return new PlanAnswer(
                List.copyOf(choices),
                best,
                byRows(problem),
                byLinks(problem),
                upgrades(best),
                List.copyOf(refused));
    }

    private static Choice choice(SimProblem problem) {
        SimSearch search = SimSearch.of(problem, SimCut.AUTOMATIC, 0);
        SimCandidate.Priced cheapest = search.cheapest();
        return new Choice(
                problem,
                cheapest,
                search.unoverlappedNs(),
                SimSearch.limitFraction(problem, cheapest),
                problem.price(cheapest.candidate(), Part.PRODUCT).ns() / cheapest.ns());
    }

    private static List<Gain> byRows(SimProblem problem) {
        long m = problem.shards().totalRows();
        LongFunction<Gain> gain = rows -> new Gain(rows, overlapGain(problem.withRows(rows)));
        List<Gain> gains = new ArrayList<>(List.of(gain.apply(m)));
        boolean pays = gains.getFirst().pays();
        // Fewer rows have more overhead: it is there that overlap stops paying, if it does.
        int ranks = problem.shards().ranks();
        for (long rows = m / 2; pays && isQuick(rows, ranks); rows /= 2) {
            gains.addFirst(gain.apply(rows));
            pays = gains.getFirst().pays();
        }
        for (int step = 1; m > 0 && !gains.getLast().pays() && step <= MOST_STEPS; step++) {
            if (m << step > ProblemOptions.MOST_SIZE) {
                break;
            }
            gains.addLast(gain.apply(m << step));
        }
        return List.copyOf(gains);
    }

    /** Many ranks are simulated in little time only where their shards are equal. */
    private static boolean isQuick(long rows, int ranks) {
        return rows >= ranks && (rows % ranks == 0 || ranks <= FEW_RANKS);
    }

    private static List<Gain> byLinks(SimProblem problem) {
        DoubleFunction<Gain> gain =
                factor ->
                        new Gain(
                                factor,
                                overlapGain(problem.on(problem.machine().withLinksFaster(factor))));
        List<Gain> gains = new ArrayList<>(List.of(gain.apply(1)));
        for (int step = 1; step <= MOST_STEPS; step++) {
            if (step == 1 || gains.getFirst().pays()) {
                gains.addFirst(gain.apply(1.0 / (1 << step)));
            }
            if (step == 1 || gains.getLast().pays()) {
                gains.addLast(gain.apply(1 << step));
            }
        }
        return List.copyOf(gains);
    }

    private static double overlapGain(SimProblem problem) {
        SimSearch search = SimSearch.of(problem, SimCut.AUTOMATIC, 0);
        return search.unoverlappedNs() / search.overlapped().ns();
    }

    private static List<Upgrade> upgrades(Choice best) {
        Machine machine = best.problem().machine();
        return List.of(
                upgrade("links", best, machine.withLinksFaster(2)),
                upgrade("on-chip memory", best, machine.withMoreOnChip(2)),
                upgrade("engine", best, machine.withEngineFaster(2)));
    }

    private static Upgrade upgrade(String what, Choice best, Machine machine) {
        double ns = SimSearch.of(best.problem().on(machine), SimCut.AUTOMATIC, 0).cheapest().ns();
        return new Upgrade(what, ns, best.cheapest().ns() / ns);
    }
}
