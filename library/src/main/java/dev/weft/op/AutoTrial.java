package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.plan.Algorithm;
import dev.weft.statistics.Quantiles;
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

    private static final String BUDGET_MS = "WEFT_AUTO_TRIAL_MS";
    private static final double DEFAULT_BUDGET_NS = 800e6;

    private static final int FEWEST_ROUNDS = 7;
    private static final int MOST_ROUNDS = 60;

    /** Of the budget, before calls count: kernels must be compiled. */
    private static final double WARM_PART = 0.2;

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
            double[] medians = medians(prepared);
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

    /** Of all calls that count; tests, which prepare many operators, set it low. */
    private static double budgetNs() {
        String ms = System.getenv(BUDGET_MS);
        if (ms == null) {
            return DEFAULT_BUDGET_NS;
        }
        if (!ms.matches("[0-9]{1,6}")) {
            throw new IllegalArgumentException(
                    "environment variable " + BUDGET_MS + " is " + ms + ": expected milliseconds");
        }
        return Long.parseLong(ms) * 1e6;
    }

    private double[] medians(List<AllGatherMatmul> prepared) {
        for (AllGatherMatmul operator : prepared) {
            for (int slot = 0; slot < OperatorMemory.SLOTS; slot++) {
                operator.nextShard().data().fill(ORDINARY);
                slowestNs(operator);
            }
        }
        double budgetNs = budgetNs();
        rounds(prepared, WARM_PART * budgetNs, 1);
        List<double[]> rounds = rounds(prepared, budgetNs, FEWEST_ROUNDS);
        double[] medians = new double[prepared.size()];
        for (int i = 0; i < medians.length; i++) {
            int operator = i;
            double[] times = rounds.stream().mapToDouble(round -> round[operator]).toArray();
            medians[i] = Quantiles.median(times);
        }
        return medians;
    }

    /** As many as fit into the time by the first rank's clock, and not too many or too few. */
    private List<double[]> rounds(List<AllGatherMatmul> prepared, double budgetNs, int fewest) {
        List<double[]> rounds = new ArrayList<>();
        Agreement agreement = new Agreement(fabric);
        long start = System.nanoTime();
        boolean goesOn = true;
        while (goesOn) {
            rounds.add(prepared.stream().mapToDouble(this::slowestNs).toArray());
            boolean fits = System.nanoTime() - start < budgetNs && rounds.size() < MOST_ROUNDS;
            goesOn = agreement.ofFirst(rounds.size() < fewest || fits ? 1 : 0) == 1;
        }
        return rounds;
    }

    private double slowestNs(AllGatherMatmul operator) {
        fabric.barrier();
        long own = operator.callInPlace(View.PIPELINED).elapsedNs();
        return GroupTimes.slowestNs(fabric, own);
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
