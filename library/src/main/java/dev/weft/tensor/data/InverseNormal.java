package dev.weft.tensor.data;

/**
 * The inverse of the standard normal distribution function, by the rational approximations of M. J.
 * Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics
 * 37 (1988), routine PPND16: about 16 digits. Java computes each step exactly as IEEE 754 says and
 * {@link StrictMath} fixes the logarithm, so results are the same bits everywhere. Pure.
 */
final class InverseNormal {

    /** Within this distance of 1/2 one approximation is enough, without a logarithm. */
    private static final double CENTRE = 0.425;

    private static final double CENTRE_SQUARED = 0.180625;

    /** Beyond this value of sqrt(-log p) lies the far tail, p below 1.4e-11. */
    private static final double FAR = 5;

    private static final double NEAR = 1.6;

    /** Coefficients of the numerators and denominators, lowest power first. */
    private static final double[] CENTRE_ABOVE = {
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
        3.3430575583588128105e4, 2.5090809287301226727e3
    };

    private static final double[] CENTRE_BELOW = {
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
        5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
        2.8729085735721942674e4, 5.2264952788528545610e3
    };

    private static final double[] NEAR_ABOVE = {
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4
    };

    private static final double[] NEAR_BELOW = {
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
        6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
        5.47593808499534494600e-4, 1.05075007164441684324e-9
    };

    private static final double[] FAR_ABOVE = {
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7
    };

    private static final double[] FAR_BELOW = {
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
        1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
        1.42151175831644588870e-7, 2.04426310338993978564e-15
    };

    private InverseNormal() {}

    /** The x below which a standard normal value lies with probability {@code p}, 0 < p < 1. */
    static double of(double p) {
        double q = p - 0.5;
        if (Math.abs(q) <= CENTRE) {
            return q * quotient(CENTRE_ABOVE, CENTRE_BELOW, CENTRE_SQUARED - q * q);
        }
        double r = Math.sqrt(-StrictMath.log(q < 0 ? p : 1 - p));
        double x =
                r <= FAR
                        ? quotient(NEAR_ABOVE, NEAR_BELOW, r - NEAR)
                        : quotient(FAR_ABOVE, FAR_BELOW, r - FAR);
        return q < 0 ? -x : x;
    }

    private static double quotient(double[] above, double[] below, double x) {
        return polynomial(above, x) / polynomial(below, x);
    }

    private static double polynomial(double[] coefficients, double x) {
        double sum = 0;
        for (int i = coefficients.length - 1; i >= 0; i--) {
            sum = sum * x + coefficients[i];
        }
        return sum;
    }
}
