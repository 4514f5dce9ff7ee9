package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Algorithm;
import dev.weft.sim.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Finds the plan that {@link Algorithm#AUTO} stands for. The first rank prices the candidates on
 * the model of the machine; the cheapest of them are tried beside sequential, on all ranks, and the
 * fastest is kept: so the choice is never slower than not to overlap, by more than what a trial
 * cannot tell. The first rank decides for all, and remembers what it decided for the life of its
 * process. Collective.
 */
final class AutoChoice {

    /** Plans that the simulator cannot tell from the cheapest: its error is of that size. */
    private static final double NEAR = 1.15;

    private static final int MOST_FINALISTS = 3;

    /** By problem: all candidates, one of them chosen. */
    private static final Map<String, List<Candidate>> DECIDED = new ConcurrentHashMap<>();

    private final Fabric fabric;
    private final Agreement agreement;
    private final AutoProblem problem;

    AutoChoice(Fabric fabric, AutoProblem problem) {
        this.fabric = fabric;
        this.agreement = new Agreement(fabric);
        this.problem = problem;
    }

    /**
     * The candidates, of which one is chosen; on ranks other than the first only those that were
     * tried.
     */
    List<Candidate> choose(Gemm gemm, AutoTrial trial) {
        if (fabric.size() == 1 || problem.chunks(Algorithm.SEQUENTIAL, 0).total() == 0) {
            return List.of(Candidate.priced(Algorithm.SEQUENTIAL, 0, Double.NaN).asChosen());
        }
        boolean first = fabric.rank() == 0;
        List<Candidate> known = first ? DECIDED.getOrDefault(problem.key(), List.of()) : List.of();
        if (agreement.ofFirst(known.size()) > 0) {
            Candidate chosen = shared(chosenOf(known)).getFirst().asChosen();
            return first ? known : List.of(chosen);
        }
        // Collective where there is a network to measure.
        Machine machine = new AutoMachine(fabric).measure(gemm, problem.aType());
        List<Candidate> priced = first ? new AutoPricing(machine, problem).prices() : List.of();
        List<Candidate> finalists = shared(finalists(priced));
        List<Candidate> tried = trial.run(finalists);
        List<Candidate> all = new ArrayList<>(tried);
        for (Candidate candidate : priced) {
            if (tried.stream().noneMatch(candidate::isPlannedAs)) {
                all.add(candidate);
            }
        }
        if (first) {
            DECIDED.put(problem.key(), List.copyOf(all));
        }
        return all;
    }

    private static List<Candidate> chosenOf(List<Candidate> candidates) {
        return candidates.stream().filter(Candidate::chosen).toList();
    }

    /** The cheapest and those near it, each algorithm once, and sequential. */
    private static List<Candidate> finalists(List<Candidate> priced) {
        List<Candidate> finalists = new ArrayList<>();
        for (Candidate candidate : priced) {
            boolean near = candidate.predictedNs() <= NEAR * priced.getFirst().predictedNs();
            boolean other =
                    finalists.stream().noneMatch(f -> f.algorithm() == candidate.algorithm());
            boolean sequential = candidate.algorithm() == Algorithm.SEQUENTIAL;
            if (other && (sequential || near && finalists.size() < MOST_FINALISTS)) {
                finalists.add(candidate);
            }
        }
        return finalists;
    }

    /** The first rank's candidates, on every rank. */
    private List<Candidate> shared(List<Candidate> own) {
        long count = agreement.ofFirst(own.size());
        List<Candidate> shared = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Candidate mine = fabric.rank() == 0 ? own.get(i) : null;
            long algorithm = agreement.ofFirst(mine == null ? 0 : mine.algorithm().ordinal());
            long cut = agreement.ofFirst(mine == null ? 0 : mine.chunksPerSource());
            long bits =
                    agreement.ofFirst(
                            mine == null ? 0 : Double.doubleToRawLongBits(mine.predictedNs()));
            shared.add(
                    Candidate.priced(
                            Algorithm.values()[(int) algorithm],
                            (int) cut,
                            Double.longBitsToDouble(bits)));
        }
        return shared;
    }
}
