package dev.weft.bench.cpu;

import dev.weft.bench.measure.Interleaved;
import dev.weft.fabric.Fabric;
import dev.weft.op.Operator;
import dev.weft.op.Operator.View;
import dev.weft.sim.Scenario;
import dev.weft.tensor.Matrix;
import dev.weft.tune.Calibration;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * What one {@link PredictRun} took, overlapped and sequential, in turns, and what the simulator
 * must be told to price the same two plans. Immutable; any thread may call it.
 *
 * @param outcome of the two whole calls, then of the gather alone and of the product alone, both of
 *     the sequential operator
 */
record PredictMeasurement(Scenario pipelined, Scenario sequential, Interleaved.Outcome outcome) {

    static final int PIPELINED = 0;
    static final int SEQUENTIAL = 1;

    private static final int GATHER = 2;
    private static final int PRODUCT = 3;

    private static final int ROUNDS_PER_SLICE = 4;

    /**
     * Collective.
     *
     * @param calibration has a round before every few calls, so that both see the same machine; of
     *     the first rank alone
     * @param slices how often
     */
    static PredictMeasurement of(
            Fabric fabric,
            PredictRun run,
            Calibration calibration,
            Interleaved.Effort warmUp,
            int slices)
            throws IOException, InterruptedException {
        try (RankOperators own = run.operators(fabric)) {
            Operator<Matrix> pipelined = run.overlapped(own);
            Operator<Matrix> sequential = run.sequential(own);
            List<RankOperators.Side> sides =
                    List.of(
                            new RankOperators.Side(pipelined, View.PIPELINED),
                            new RankOperators.Side(sequential, View.PIPELINED),
                            new RankOperators.Side(sequential, View.COMM_ONLY),
                            new RankOperators.Side(sequential, View.COMPUTE_ONLY));
            own.measure(warmUp, sides);
            long[][] ns = new long[sides.size()][slices * ROUNDS_PER_SLICE];
            for (int slice = 0; slice < slices; slice++) {
                fabric.barrier();
                if (fabric.rank() == 0) {
                    calibration.round();
                }
                fabric.barrier();
                for (int i = 0; i < ROUNDS_PER_SLICE; i++) {
                    long[] round = own.round(sides);
                    for (int side = 0; side < round.length; side++) {
                        ns[side][slice * ROUNDS_PER_SLICE + i] = round[side];
                    }
                }
            }
            return new PredictMeasurement(
                    scenario(fabric, run, pipelined),
                    scenario(fabric, run, sequential),
                    new Interleaved.Outcome(ns));
        }
    }

    /** The operator's own plans. */
    private static Scenario scenario(Fabric fabric, PredictRun run, Operator<Matrix> operator) {
        return new Scenario(
                operator.plans(),
                operator.plan().chunks(),
                run.sums() == null,
                fabric.hosts(),
                run.dtype(),
                operator.lastResult().product().dtype(),
                List.of(run.columns()),
                false,
                operator.computeWorkers(),
                Map.of(),
                run.sums());
    }

    /** Of sums, what comes after the product: they are also added and finished. */
    double gatherOverProduct() {
        if (sequential.sums() != null) {
            return outcome.medianNs(SEQUENTIAL) / outcome.medianNs(PRODUCT) - 1;
        }
        return outcome.medianNs(GATHER) / outcome.medianNs(PRODUCT);
    }
}
