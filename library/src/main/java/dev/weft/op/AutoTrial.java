package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * Tries prepared operators side by side, in turn, and finds the fastest. A call's time is that of
 * the slowest rank. Collective.
 */
final class AutoTrial {

    /** For all calls that count, as far as it can be foreseen. */
    private static final double BUDGET_NS = 400e6;

    private static final int FEWEST_ROUNDS = 3;
    private static final int MOST_ROUNDS = 15;

    /** Both slots of an operator's memory are touched, and kernels compiled. */
    private static final int WARM_CALLS = 2;

    private static final double WARM_NS = 60e6;

    /**
     * What is no slower than this, beside the fastest, is as fast: the simulator's order decides.
     */
    private static final double TELLING = 1.02;

    private final Fabric fabric;
    private final Function<Candidate, AllGatherMatmul> operators;

    AutoTrial(Fabric fabric, Function<Candidate, AllGatherMatmul> operators) {
        this.fabric = fabric;
        this.operators = operators;
    }

    /** The candidates with what they took, one of them chosen. */
    List<Candidate> run(List<Candidate> candidates) {
        if (candidates.size() == 1) {
            return List.of(candidates.getFirst().asChosen());
        }
        List<AllGatherMatmul> prepared = new ArrayList<>();
        try {
            for (Candidate candidate : candidates) {
                prepared.add(operators.apply(candidate));
            }
            double[] medians = medians(candidates, prepared);
            int fastest = (int) new Agreement(fabric).ofFirst(fastest(candidates, medians));
            List<Candidate> tried = new ArrayList<>();
            for (int i = 0; i < medians.length; i++) {
                tried.add(candidates.get(i).measured(medians[i], i == fastest));
            }
            return tried;
        } finally {
            prepared.forEach(AllGatherMatmul::close);
        }
    }

    private double[] medians(List<Candidate> candidates, List<AllGatherMatmul> prepared) {
        double foreseen = 0;
        for (Candidate candidate : candidates) {
            foreseen += candidate.predictedNs();
        }
        int rounds = (int) Math.clamp(BUDGET_NS / foreseen, FEWEST_ROUNDS, MOST_ROUNDS);
        int warm = (int) Math.clamp(WARM_NS / foreseen, WARM_CALLS, MOST_ROUNDS);
        double[][] ns = new double[prepared.size()][rounds];
        for (int round = -warm; round < rounds; round++) {
            for (int i = 0; i < ns.length; i++) {
                ns[i][Math.max(0, round)] = slowestNs(prepared.get(i));
            }
        }
        return Arrays.stream(ns).mapToDouble(AutoTrial::median).toArray();
    }

    private double slowestNs(AllGatherMatmul operator) {
        fabric.barrier();
        long own = operator.callInPlace(View.PIPELINED).elapsedNs();
        return Arrays.stream(fabric.exchange(own)).max().orElseThrow();
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    /** To overlap must be faster than not to; of what overlaps, the cheapest of the fastest. */
    static int fastest(List<Candidate> candidates, double[] medians) {
        double least = Arrays.stream(medians).min().orElseThrow();
        for (int i = 0; i < medians.length; i++) {
            boolean sequential = candidates.get(i).algorithm() == Algorithm.SEQUENTIAL;
            if (medians[i] <= (sequential ? least : TELLING * least)) {
                return i;
            }
        }
        throw new IllegalStateException("no candidate was tried");
    }
}
