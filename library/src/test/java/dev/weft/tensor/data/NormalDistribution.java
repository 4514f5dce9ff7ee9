package dev.weft.tensor.data;

/** The normal distribution function by textbook series, as an oracle for its inverse. */
final class NormalDistribution {

    private NormalDistribution() {}

    /** The probability of a value below {@code x}, to about 14 digits also in the lower tail. */
    static double below(double x) {
        if (x > 0) {
            return 1 - below(-x);
        }
        double density = Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
        return x > -1 ? 0.5 + density * centralSeries(x) : density / tailFraction(-x);
    }

    /** x + x^3/3 + x^5/(3*5) + ... */
    private static double centralSeries(double x) {
        double term = x;
        double sum = 0;
        for (int k = 3; sum + term != sum; k += 2) {
            sum += term;
            term *= x * x / k;
        }
        return sum;
    }

    /** x + 1/(x + 2/(x + 3/(x + ...))) */
    private static double tailFraction(double x) {
        double fraction = x;
        for (int k = 400; k >= 1; k--) {
            fraction = x + k / fraction;
        }
        return fraction;
    }
}
