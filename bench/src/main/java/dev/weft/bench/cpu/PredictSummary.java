package dev.weft.bench.cpu;

import dev.weft.statistics.Quantiles;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * How far predictions were off. Only runs with enough to gather count: a product alone would be
 * easy to predict. Immutable; any thread may call it.
 *
 * @param predictions of the runs that count
 */
record PredictSummary(List<Prediction> predictions) {

    private static final double ENOUGH_TO_GATHER = 0.3;
    private static final int RUNS = 12;
    private static final double MEDIAN_ERROR = 0.10;
    private static final double WORST_ERROR = 0.25;

    /** One prediction, with what came of it. */
    record Prediction(double predictedNs, double measuredNs, double gatherOverProduct) {

        /** Above 0 where it took less than predicted. */
        double error() {
            return predictedNs / measuredNs - 1;
        }

        boolean counts() {
            return gatherOverProduct >= ENOUGH_TO_GATHER;
        }
    }

    PredictSummary {
        predictions = predictions.stream().filter(Prediction::counts).toList();
    }

    boolean isEmpty() {
        return predictions.isEmpty();
    }

    double medianError() {
        return Quantiles.median(errors());
    }

    double worstError() {
        return Quantiles.quantile(errors(), 1);
    }

    private double[] errors() {
        return predictions.stream().mapToDouble(p -> Math.abs(p.error())).toArray();
    }

    boolean passes() {
        return predictions.size() >= RUNS
                && medianError() < MEDIAN_ERROR
                && worstError() < WORST_ERROR;
    }

    /** The median of what was predicted over what was measured. */
    double ratio() {
        return 1 + Quantiles.median(predictions.stream().mapToDouble(Prediction::error).toArray());
    }

    Map<String, Double> figures() {
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("counted", (double) predictions.size());
        figures.put("medianError", medianError());
        figures.put("worstError", worstError());
        figures.put("pass", passes() ? 1.0 : 0.0);
        return figures;
    }
}
