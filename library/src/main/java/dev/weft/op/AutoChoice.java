package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Algorithm;
import dev.weft.sim.Machine;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

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

    /** Cuts whose prices are that near are taken to cost the same: fine ones hide more. */
    private static final double SAME = 1.10;

    private static final int MOST_FINALISTS = 3;

    /** Of gathered A: beyond it only the cheapest is tried beside sequential. */
    private static final double MANY_BYTES = 256 << 20;

    private static final int MOST_DECIDED = 1000;

    /** By problem: all candidates, one of them chosen. */
    private static final Map<String, List<Candidate>> DECIDED =
            Collections.synchronizedMap(
                    new LinkedHashMap<>() {
                        private static final long serialVersionUID = 1L;

                        @Override
                        protected boolean removeEldestEntry(
                                Map.Entry<String, List<Candidate>> eldest) {
                            return size() > MOST_DECIDED;
                        }
                    });

    private final Fabric fabric;
    private final Agreement agreement;
    private final AutoProblem problem;

    AutoChoice(Fabric fabric, AutoProblem problem) {
        this.fabric = fabric;
        this.agreement = new Agreement(fabric);
        this.problem = problem;
    }

    /**
     * What was found.
     *
     * @param candidates of which one is chosen; on ranks other than the first only those that were
     *     tried
     * @param operator of the chosen one, where it was tried; otherwise null
     */
    record Choice(List<Candidate> candidates, AllGatherMatmul operator) {

        Candidate chosen() {
            return chosenOf(candidates).getFirst();
        }
    }

    Choice choose(Gemm gemm, AutoTrial trial) {
        if (fabric.size() == 1 || problem.chunks(Algorithm.SEQUENTIAL, 0).total() == 0) {
            Candidate only = Candidate.priced(Algorithm.SEQUENTIAL, 0, Double.NaN);
            return new Choice(List.of(only.asChosen()), null);
        }
        if (problem.columns().isEmpty()) {
            // A gather alone has nothing to hide behind: as few copies as there can be.
            Algorithm rule = fabric.sharesMemory() ? Algorithm.DIRECT : Algorithm.MESH_PUSH;
            return new Choice(List.of(Candidate.priced(rule, 0, Double.NaN).asChosen()), null);
        }
        boolean first = fabric.rank() == 0;
        List<Candidate> known = first ? DECIDED.getOrDefault(problem.key(), List.of()) : List.of();
        if (agreement.ofFirst(known.size()) > 0) {
            Candidate chosen = shared(chosenOf(known)).getFirst().asChosen();
            return new Choice(first ? known : List.of(chosen), null);
        }
        // Collective where there is a network to measure.
        Machine machine = new AutoMachine(fabric).measure(gemm, problem.aType());
        List<Candidate> priced =
                first ? new AutoPricing(machine, problem, fabric::worked).prices() : List.of();
        AutoTrial.Outcome outcome = trial.run(shared(finalists(priced, mostFinalists())));
        List<Candidate> all = withUntried(outcome.candidates(), priced);
        if (first) {
            DECIDED.put(problem.key(), all);
        }
        return new Choice(all, outcome.operator());
    }

    private static List<Candidate> withUntried(List<Candidate> tried, List<Candidate> priced) {
        List<Candidate> all = new ArrayList<>(tried);
        for (Candidate candidate : priced) {
            if (tried.stream().noneMatch(candidate::isPlannedAs)) {
                all.add(candidate);
            }
        }
        return List.copyOf(all);
    }

    private static List<Candidate> chosenOf(List<Candidate> candidates) {
        return candidates.stream().filter(Candidate::chosen).toList();
    }

    /** Operators that are tried side by side are in memory side by side. */
    private int mostFinalists() {
        return problem.gatheredBytes() > MANY_BYTES ? 1 : MOST_FINALISTS;
    }

    /**
     * The cheapest and those near it, each algorithm once; direct, which has no copies to be wrong
     * about (best in 30 of 60 random problems, and by up to 30% in two where the model had it
     * behind the others); and sequential.
     */
    static List<Candidate> finalists(List<Candidate> priced, int most) {
        List<Candidate> finalists = new ArrayList<>();
        for (Candidate candidate : priced) {
            boolean near = candidate.predictedNs() <= NEAR * priced.getFirst().predictedNs();
            boolean other =
                    finalists.stream().noneMatch(f -> f.algorithm() == candidate.algorithm());
            boolean sequential = candidate.algorithm() == Algorithm.SEQUENTIAL;
            boolean direct = candidate.algorithm() == Algorithm.DIRECT && most > 1;
            if (other && (sequential || direct || near && finalists.size() < most)) {
                finalists.add(finest(candidate, priced));
            }
        }
        return finalists;
    }

    /** The same algorithm in the finest cut that is as cheap, as far as a price can tell. */
    private static Candidate finest(Candidate cheapest, List<Candidate> priced) {
        return priced.stream()
                .filter(c -> c.algorithm() == cheapest.algorithm())
                .filter(c -> c.predictedNs() <= SAME * cheapest.predictedNs())
                .max(Comparator.comparingInt(Candidate::chunksPerSource))
                .orElseThrow();
    }

    /** The first rank's candidates, on every rank. */
    private List<Candidate> shared(List<Candidate> own) {
        long count = agreement.ofFirst(own.size());
        List<Candidate> shared = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Candidate mine = fabric.rank() == 0 ? own.get(i) : null;
            long algorithm =
                    agreement.ofFirst(mine == null ? 0 : Agreement.number(mine.algorithm()));
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
