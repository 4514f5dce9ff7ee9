package dev.weft.search;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.cut.Cut;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Finds the plan that {@link Algorithm#AUTO} stands for. The first rank prices the candidates on a
 * model of the machine. All ranks then try the cheapest of them, and sequential, and keep the
 * fastest. So, as far as a trial can tell, the choice is never slower than sequential. The first
 * rank decides for all, and remembers its decisions for the life of its process. Collective.
 */
public final class AutoChoice {

    /** Plans within this factor of the cheapest are tried: the simulator's error is that large. */
    private static final double NEAR = 1.15;

    /** Cuts within this factor count as equally cheap: fine ones hide more. */
    private static final double SAME = 1.10;

    private static final int MOST_FINALISTS = 3;

    /** Bytes of gathered A beyond which only the cheapest is tried against sequential. */
    private static final double MANY_BYTES = 256 << 20;

    private static final int MOST_DECIDED = 1000;

    /** All candidates, one of them marked as chosen. */
    private static final Map<Key, List<Candidate>> DECIDED =
            Collections.synchronizedMap(
                    new LinkedHashMap<>() {
                        private static final long serialVersionUID = 1L;

                        @Override
                        protected boolean removeEldestEntry(
                                Map.Entry<Key, List<Candidate>> eldest) {
                            return size() > MOST_DECIDED;
                        }
                    });

    private final Fabric fabric;
    private final Problem problem;
    private final Key key;

    /** The key of a remembered decision. */
    private record Key(Problem problem, String settings, String ranks) {}

    /**
     * @param fabric null if this rank chooses alone
     * @param problem with the hosts of {@code fabric}
     * @param settings settings that are not part of the problem but affect the time of a call, such
     *     as the engine and the share of the cores
     */
    public AutoChoice(Fabric fabric, Problem problem, String settings) {
        this.fabric = fabric;
        this.problem = problem;
        this.key = new Key(problem, settings, fabric == null ? "" : fabric.kind());
    }

    /**
     * The result.
     *
     * @param candidates one of them is marked as chosen; on ranks other than the first, only those
     *     that were tried
     * @param prepared the chosen one if it was tried, otherwise null
     */
    public record Choice<T>(List<Candidate> candidates, T prepared) {

        public Candidate chosen() {
            return chosenOf(candidates).getFirst();
        }
    }

    /**
     * Chooses, and has candidates tried if nothing is known yet.
     *
     * @param prices all candidates, the cheapest first. If needed, it is called on every rank, as
     *     measuring a machine may be collective; only the first rank's answer counts
     */
    public <T> Choice<T> choose(Supplier<List<Candidate>> prices, Trial<T> trial) {
        if (problem.sums() == null && problem.isAlone()) {
            return only(Algorithm.SEQUENTIAL, Math.max(1, problem.workers()));
        }
        if (problem.columns().isEmpty()) {
            // A gather without a product has nothing to overlap with: use as few copies as
            // possible.
            return only(fabric.sharesMemory() ? Algorithm.DIRECT : Algorithm.MESH_PUSH, 1);
        }
        boolean first = fabric == null || fabric.rank() == 0;
        List<Candidate> known = first ? DECIDED.getOrDefault(key, List.of()) : List.of();
        if (ofFirst(known.size()) > 0) {
            Candidate chosen = shared(chosenOf(known)).getFirst().asChosen(true);
            return new Choice<>(first ? known : List.of(chosen), null);
        }
        List<Candidate> priced = prices.get();
        Choice<T> outcome =
                new AutoTrial<>(fabric, trial).run(shared(finalists(priced, mostFinalists())));
        List<Candidate> all = withUntried(outcome.candidates(), priced);
        if (first) {
            DECIDED.put(key, all);
        }
        return new Choice<>(all, outcome.prepared());
    }

    /** Tries candidates, the same on every rank, and keeps the fastest. Collective. */
    public static <T> Choice<T> tried(Fabric fabric, List<Candidate> candidates, Trial<T> trial) {
        return new AutoTrial<>(fabric, trial).run(candidates);
    }

    private <T> Choice<T> only(Algorithm algorithm, int lanes) {
        int asked = problem.lanes() > 0 ? problem.lanes() : lanes;
        Candidate rule = Candidate.of(algorithm, problem.cut(), 0, asked);
        return new Choice<>(List.of(rule.asChosen(true)), null);
    }

    private static List<Candidate> withUntried(List<Candidate> tried, List<Candidate> priced) {
        return Stream.concat(
                        tried.stream(),
                        priced.stream().filter(c -> tried.stream().noneMatch(c::isPlannedAs)))
                .toList();
    }

    private static List<Candidate> chosenOf(List<Candidate> candidates) {
        return candidates.stream().filter(Candidate::chosen).toList();
    }

    /** Candidates that are tried together need memory at the same time. */
    private int mostFinalists() {
        return problem.gatheredBytes() > MANY_BYTES ? 1 : MOST_FINALISTS;
    }

    /**
     * The cheapest and those near it, each algorithm once; direct, for which the model cannot
     * misjudge copies (best in 30 of 60 random problems, and by up to 30% in two where the model
     * ranked it behind the others); and sequential.
     */
    static List<Candidate> finalists(List<Candidate> priced, int most) {
        List<Candidate> finalists = new ArrayList<>();
        for (Candidate candidate : priced) {
            boolean near = candidate.predictedNs() <= NEAR * priced.getFirst().predictedNs();
            boolean other =
                    finalists.stream().noneMatch(f -> f.algorithm() == candidate.algorithm());
            boolean sequential = AutoTrial.isSequential(candidate);
            boolean direct = PlanSearch.isDirect(candidate.algorithm()) && most > 1;
            if (other && (sequential || direct || near && finalists.size() < most)) {
                finalists.add(finest(candidate, priced));
            }
        }
        return finalists;
    }

    /** The same algorithm in the finest cut that is equally cheap, as far as a price can tell. */
    private static Candidate finest(Candidate cheapest, List<Candidate> priced) {
        return priced.stream()
                .filter(c -> c.algorithm() == cheapest.algorithm())
                .filter(c -> c.predictedNs() <= SAME * cheapest.predictedNs())
                .max(Comparator.comparingInt(Candidate::chunksPerSource))
                .orElseThrow();
    }

    /** The first rank's candidates, on every rank. */
    private List<Candidate> shared(List<Candidate> own) {
        long count = ofFirst(own.size());
        List<Candidate> shared = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long[] numbers = i < own.size() ? numbers(own.get(i)) : new long[NUMBERS];
            shared.add(candidate(Arrays.stream(numbers).map(this::ofFirst).toArray()));
        }
        return shared;
    }

    private static final int NUMBERS = 7;

    private static long[] numbers(Candidate candidate) {
        return new long[] {
            ((Enum<?>) candidate.algorithm()).ordinal(),
            candidate.cut().chunkRows(),
            candidate.cut().splitsPerRank(),
            candidate.cut().chunkCols(),
            candidate.chunksPerSource(),
            candidate.lanes(),
            Double.doubleToRawLongBits(candidate.predictedNs())
        };
    }

    private Candidate candidate(long[] numbers) {
        int number = (int) numbers[0];
        return Candidate.of(
                        problem.sums() == null
                                ? Algorithm.values()[number]
                                : Reduction.values()[number],
                        new Cut(numbers[1], (int) numbers[2], numbers[3]),
                        (int) numbers[4],
                        (int) numbers[5])
                .priced(Double.longBitsToDouble(numbers[6]));
    }

    private long ofFirst(long value) {
        return AutoTrial.ofFirst(fabric, value);
    }
}
