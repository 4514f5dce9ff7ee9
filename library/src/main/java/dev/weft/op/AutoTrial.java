package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * Tries prepared operators side by side, in turn, and keeps the fastest: that very one, since where
 * its memory happens to lie makes a difference of 5 to 10%. A call's time is that of the slowest
 * rank. Collective.
 */
final class AutoTrial {

    /** For all calls that count, as far as it can be foreseen. */
    private static final double BUDGET_NS = 800e6;

    private static final int FEWEST_ROUNDS = 7;
    private static final int MOST_ROUNDS = 200;

    /** Both slots of an operator's memory are filled, and kernels compiled. */
    private static final int WARM_CALLS = OperatorMemory.SLOTS + 1;

    private static final double WARM_NS = 150e6;

    /**
     * What is no slower than this, beside the fastest, is as fast: the simulator's order decides.
     */
    private static final double TELLING = 1.02;

    /** Memory that was never written is read faster than any that was. */
    private static final byte ORDINARY = 0x3f;

    private final Fabric fabric;
    private final Function<Candidate, AllGatherMatmul> operators;

    /**
     * What came of a trial.
     *
     * @param candidates with what they took, one of them chosen
     * @param operator of the chosen one
     */
    record Outcome(List<Candidate> candidates, AllGatherMatmul operator) {}

    AutoTrial(Fabric fabric, Function<Candidate, AllGatherMatmul> operators) {
        this.fabric = fabric;
        this.operators = operators;
    }

    Outcome run(List<Candidate> candidates) {
        List<AllGatherMatmul> prepared = new ArrayList<>();
        AllGatherMatmul kept = null;
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
            kept = prepared.get(fastest);
            return new Outcome(tried, kept);
        } finally {
            AllGatherMatmul winner = kept;
            closeAll(prepared.stream().filter(operator -> operator != winner).toList());
        }
    }

    /** Every one of them, whatever the others throw. */
    private static void closeAll(List<AllGatherMatmul> operators) {
        if (!operators.isEmpty()) {
            AllGatherMatmul first = operators.getFirst();
            try (first) {
                closeAll(operators.subList(1, operators.size()));
            }
        }
    }

    private double[] medians(List<Candidate> candidates, List<AllGatherMatmul> prepared) {
        double foreseen = 0;
        for (Candidate candidate : candidates) {
            foreseen += candidate.predictedNs();
        }
        int warm = (int) Math.clamp(WARM_NS / foreseen, WARM_CALLS, MOST_ROUNDS);
        double lastNs = foreseen;
        for (int round = 0; round < warm; round++) {
            lastNs = 0;
            for (AllGatherMatmul operator : prepared) {
                if (round < OperatorMemory.SLOTS) {
                    operator.nextShard().data().fill(ORDINARY);
                }
                lastNs += slowestNs(operator);
            }
        }
        // What calls take and not what they should: all ranks have seen the same times.
        int rounds = (int) Math.clamp(BUDGET_NS / lastNs, FEWEST_ROUNDS, MOST_ROUNDS);
        double[][] ns = new double[prepared.size()][rounds];
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < ns.length; i++) {
                ns[i][round] = slowestNs(prepared.get(i));
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

    /** To overlap must be no slower than not to; of what overlaps, the cheapest of the fastest. */
    static int fastest(List<Candidate> candidates, double[] medians) {
        double least = Arrays.stream(medians).min().orElseThrow();
        double most = TELLING * least;
        for (int i = 0; i < medians.length; i++) {
            if (candidates.get(i).algorithm() == Algorithm.SEQUENTIAL) {
                most = Math.min(most, medians[i]);
            }
        }
        for (int i = 0; i < medians.length; i++) {
            if (medians[i] <= most) {
                return i;
            }
        }
        throw new IllegalStateException("no candidate was tried");
    }
}
