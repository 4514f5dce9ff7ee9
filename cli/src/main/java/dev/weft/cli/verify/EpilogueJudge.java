package dev.weft.cli.verify;

import dev.weft.cli.data.EpilogueData;
import dev.weft.gemm.ErrorBound;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.stream.LongStream;

/**
 * Judges results of an epilogue against the same steps in float64, from the same fp32 sums, with
 * {@link StrictMath} and a series; it shares no code with what made them. Each step may be off by
 * one unit in the last place of fp32, and makes earlier errors at most 1.13 times larger, by the
 * steepest slope of an activation; a norm passes them on as far as its formula does; the last
 * rounding adds half a unit of the output's type. Thread-safe.
 */
public record EpilogueJudge(EpilogueData data) {

    private static final double STEEPEST = 1.13;

    /** A reference takes about a microsecond. */
    private static final long MOST_ELEMENTS = 1 << 20;

    /**
     * The largest error as a share of what is allowed, over all rows or, if there are many
     * elements, over rows at equal distances; infinite if a NaN is missing.
     *
     * @param sums the sums; if swiglu joins them, the gate's on the left and up's on the right
     */
    public double worst(Matrix sums, Matrix results) {
        if (sums.rows() == 0 || sums.cols() == 0) {
            return 0;
        }
        long most = Math.clamp(MOST_ELEMENTS / sums.cols(), 1, sums.rows());
        return LongStream.range(0, most)
                .parallel()
                .map(i -> i * sums.rows() / most)
                .mapToDouble(row -> worstOfRow(row, sums, results))
                .max()
                .orElseThrow();
    }

    private double worstOfRow(long row, Matrix sums, Matrix results) {
        Estimate[] estimates = new Estimate[Math.toIntExact(results.cols())];
        String norm = null;
        for (int col = 0; col < estimates.length; col++) {
            Estimate result = new Estimate(sums.get(row, col), 0);
            boolean joined = sums.cols() > results.cols();
            Estimate up = joined ? new Estimate(sums.get(row, col + results.cols()), 0) : null;
            for (String step : data.text().split(",")) {
                if (step.equals("swiglu")) {
                    result = swiglu(result, up);
                    up = null;
                } else if (step.equals("rmsnorm") || step.equals("layernorm")) {
                    norm = step;
                } else {
                    result = after(step, row, col, result);
                    up = up == null ? null : after(step, row, col, up);
                }
            }
            estimates[col] = result;
        }
        if (norm != null) {
            normalize(estimates, norm.equals("layernorm"));
        }
        double worst = 0;
        for (int col = 0; col < estimates.length; col++) {
            worst = Math.max(worst, ratio(estimates[col], results.get(row, col), results.dtype()));
        }
        return worst;
    }

    /**
     * Normalizes a row. An error of a value shows in its own result by the scale, and in all
     * results by the mean and the mean square.
     */
    private void normalize(Estimate[] row, boolean layer) {
        double mean = 0;
        double meanError = 0;
        for (Estimate each : row) {
            mean += layer ? each.value() / row.length : 0;
            meanError += layer ? each.error() / row.length : 0;
        }
        // Sums in float64 may be off by this share of what they add up.
        double lost = row.length * 0x1p-52;
        double square = 0;
        double squareError = 0;
        for (int i = 0; i < row.length; i++) {
            double value = row[i].value() - mean;
            double error = row[i].error() + meanError;
            error += layer ? lost * (Math.abs(row[i].value()) + Math.abs(mean)) : 0;
            row[i] = new Estimate(value, error);
            square += value * value / row.length;
            squareError += (2 * Math.abs(value) + error) * error / row.length;
        }
        double root = StrictMath.sqrt(square + EpilogueData.EPSILON);
        double rootError = squareError / (root * root) + lost;
        for (int i = 0; i < row.length; i++) {
            double weight = data.normWeight().get(0, i) / root;
            double scaled = row[i].value() * weight;
            double value = layer ? scaled + data.normBias().get(0, i) : scaled;
            double error = row[i].error() * Math.abs(weight) + Math.abs(scaled) * rootError;
            row[i] = new Estimate(value, error + Math.ulp((float) value));
        }
    }

    /** A value in float64, and how far one of fp32 may be from it. */
    private record Estimate(double value, double error) {}

    private static double ratio(Estimate result, float actual, DType type) {
        float expected = type.round((float) result.value());
        if (Float.compare(actual, expected) == 0) {
            return 0;
        }
        double largest = Math.abs(result.value()) + result.error();
        double allowed = result.error() + ErrorBound.rounding(type, largest);
        double ratio = Math.abs(actual - result.value()) / allowed;
        return Double.isNaN(ratio) ? Double.POSITIVE_INFINITY : ratio;
    }

    private Estimate after(String step, long row, long col, Estimate estimate) {
        double before = estimate.value();
        double value =
                switch (step) {
                    case "bias" -> before + data.bias().get(0, col);
                    case "residual" -> before + data.residual().get(row, col);
                    case "relu" -> Math.max(before, 0);
                    case "silu" -> silu(before, before);
                    case "gelu" -> gelu(before);
                    case "gelu-tanh" -> silu(before, tanhArgument(before));
                    default -> throw new IllegalArgumentException("no reference of " + step);
                };
        return new Estimate(value, STEEPEST * estimate.error() + Math.ulp((float) value));
    }

    private static Estimate swiglu(Estimate gate, Estimate up) {
        double silu = silu(gate.value(), gate.value());
        double value = silu * up.value();
        double error = STEEPEST * gate.error() * Math.abs(up.value()) + Math.abs(silu) * up.error();
        return new Estimate(value, error + Math.ulp((float) value));
    }

    /** x / (1 + e^-argument). */
    private static double silu(double x, double argument) {
        return x == Double.NEGATIVE_INFINITY ? -0.0 : x / (1 + StrictMath.exp(-argument));
    }

    private static double gelu(double x) {
        return x == Double.NEGATIVE_INFINITY ? -0.0 : x * distribution(x);
    }

    private static double tanhArgument(double x) {
        return 2 * StrictMath.sqrt(2 / StrictMath.PI) * (x + 0.044715 * x * x * x);
    }

    /**
     * The distribution function of the standard normal: a series near zero, a continued fraction in
     * the tails.
     */
    private static double distribution(double x) {
        double t = Math.abs(x);
        double density = StrictMath.exp(-t * t / 2) / StrictMath.sqrt(2 * StrictMath.PI);
        double tail;
        if (t < 3) {
            double sum = 0;
            double term = t;
            for (int k = 1; term > sum * 0x1p-60; k++) {
                sum += term;
                term *= t * t / (2 * k + 1);
            }
            tail = 0.5 - density * sum;
        } else {
            double fraction = t;
            for (int k = 100; k > 0; k--) {
                fraction = t + k / fraction;
            }
            tail = density / fraction;
        }
        return x < 0 ? tail : 1 - tail;
    }
}
