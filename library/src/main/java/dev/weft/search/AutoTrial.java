package dev.weft.search;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import dev.weft.process.EnvironmentVariable;
import dev.weft.search.AutoChoice.Choice;
import dev.weft.tune.Effort;
import dev.weft.tune.Quantiles;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Times prepared candidates in turn, round after round, and keeps the fastest. It keeps that very
 * instance, since the placement of its memory makes a difference of 5 to 10%. A call's time is that
 * of the slowest rank. Collective.
 */
record AutoTrial<T>(Fabric fabric, Trial<T> trial) {

    private static final long DEFAULT_BUDGET_MS = 800;

    private static final int FEWEST_ROUNDS = 7;
    private static final int MOST_ROUNDS = 60;

    /** The part of the budget before calls count: kernels must be compiled. */
    private static final double WARM_PART = 0.2;

    /** Anything within this factor counts as equally fast: the simulator's order decides. */
    private static final double TELLING = 1.02;

    /** The candidates with their measured times, one of them chosen. */
    Choice<T> run(List<Candidate> candidates) {
        List<T> prepared = new ArrayList<>();
        T kept = null;
        try {
            for (Candidate candidate : candidates) {
                prepared.add(trial.prepare(candidate));
            }
            double[] medians = medians(prepared);
            int fastest = (int) ofFirst(fabric, fastest(candidates, medians));
            List<Candidate> tried = new ArrayList<>();
            for (int i = 0; i < medians.length; i++) {
                tried.add(candidates.get(i).measured(medians[i]).asChosen(i == fastest));
            }
            kept = prepared.get(fastest);
            return new Choice<>(tried, kept);
        } finally {
            T winner = kept;
            closeAll(prepared.stream().filter(one -> one != winner).toList());
        }
    }

    /** Closes all, whatever any of them throws. */
    private void closeAll(List<T> prepared) {
        if (!prepared.isEmpty()) {
            try {
                closeAll(prepared.subList(1, prepared.size()));
            } finally {
                trial.close(prepared.getFirst());
            }
        }
    }

    /** The first rank's value, or the rank's own if there is no fabric. */
    static long ofFirst(Fabric fabric, long value) {
        return fabric == null ? value : fabric.exchange(value)[0];
    }

    /** The time for all calls that count; tests, which prepare many operators, set it low. */
    private static double budgetNs() {
        return EnvironmentVariable.ms(System.getenv(), Effort.TRIAL_MS, DEFAULT_BUDGET_MS) * 1e6;
    }

    private double[] medians(List<T> prepared) {
        double budgetNs = budgetNs();
        rounds(prepared, WARM_PART * budgetNs, 1);
        List<double[]> rounds = rounds(prepared, budgetNs, FEWEST_ROUNDS);
        double[] medians = new double[prepared.size()];
        for (int i = 0; i < medians.length; i++) {
            int one = i;
            medians[i] =
                    Quantiles.median(rounds.stream().mapToDouble(round -> round[one]).toArray());
        }
        return medians;
    }

    /** As many rounds as fit the time by the first rank's clock, within limits. */
    private List<double[]> rounds(List<T> prepared, double budgetNs, int fewest) {
        List<double[]> rounds = new ArrayList<>();
        long start = System.nanoTime();
        boolean goesOn = true;
        while (goesOn) {
            rounds.add(prepared.stream().mapToDouble(this::slowestNs).toArray());
            boolean fits = System.nanoTime() - start < budgetNs && rounds.size() < MOST_ROUNDS;
            goesOn = ofFirst(fabric, rounds.size() < fewest || fits ? 1 : 0) == 1;
        }
        return rounds;
    }

    private double slowestNs(T prepared) {
        if (fabric == null) {
            return trial.callNs(prepared);
        }
        fabric.barrier();
        long own = trial.callNs(prepared);
        return Arrays.stream(fabric.exchange(own)).max().orElseThrow();
    }

    /**
     * An overlapping candidate must be no slower than sequential; among those, the cheapest of the
     * fastest wins. If sums are to have the bits of the whole product, sequential is not a
     * candidate: it sums by rank, which gives other bits.
     */
    static int fastest(List<Candidate> candidates, double[] medians) {
        double least = Arrays.stream(medians).min().orElseThrow();
        double most = TELLING * least;
        for (int i = 0; i < medians.length; i++) {
            if (isSequential(candidates.get(i))) {
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

    /** Whether nothing overlaps, for a gather or a sum. */
    static boolean isSequential(Candidate candidate) {
        return candidate.algorithm().label().equals(Algorithm.SEQUENTIAL.label());
    }
}
