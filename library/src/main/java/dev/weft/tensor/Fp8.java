package dev.weft.tensor;

/**
 * The two 8-bit formats of the Open Compute Project (OFP8). e4m3 has no infinities and one NaN of
 * each sign; e5m2 has the layout of IEEE types. Pure functions.
 */
enum Fp8 {
    E4M3(3, 7, 0x7E),
    E5M2(2, 15, 0x7B);

    private static final int NAN = 0x7F;
    private static final int FP32_MANTISSA = 23;
    private static final int FP32_BIAS = 127;

    private final int mantissaBits;
    private final int bias;
    private final float max;
    private final int maxBits;

    /** The value of every pattern: a lookup is faster than the arithmetic. */
    private final float[] values = new float[256];

    Fp8(int mantissaBits, int bias, int maxBits) {
        this.mantissaBits = mantissaBits;
        this.bias = bias;
        this.maxBits = maxBits;
        for (int bits = 0; bits < values.length; bits++) {
            values[bits] = value(bits);
        }
        this.max = values[maxBits];
    }

    private float value(int bits) {
        int magnitude = bits & 0x7F;
        int mantissa = magnitude & (1 << mantissaBits) - 1;
        int exponent = magnitude >>> mantissaBits;
        float value;
        if (magnitude <= maxBits) {
            float steps = exponent == 0 ? mantissa : mantissa + (1 << mantissaBits);
            value = Math.scalb(steps, Math.max(exponent, 1) - bias - mantissaBits);
        } else {
            // Only e5m2 has patterns above its largest value with a mantissa of 0.
            value = mantissa == 0 ? Float.POSITIVE_INFINITY : Float.NaN;
        }
        return bits > NAN ? -value : value;
    }

    float widen(byte bits) {
        return values[bits & 0xFF];
    }

    /**
     * Rounds to nearest, ties to even. Values that are too large, including infinities, become the
     * largest finite value; NaN stays NaN.
     */
    byte narrow(float value) {
        int bits = Float.floatToRawIntBits(value);
        int sign = bits >>> 24 & 0x80;
        float magnitude = Math.abs(value);
        if (Float.isNaN(value)) {
            return (byte) (sign | NAN);
        }
        if (magnitude >= max) {
            return (byte) (sign | maxBits);
        }
        if (magnitude < Math.scalb(1f, 1 - bias)) {
            // Multiples of the smallest value; scaling is exact, and a carry gives the first normal
            // value.
            int steps = (int) Math.rint(Math.scalb(magnitude, bias - 1 + mantissaBits));
            return (byte) (sign | steps);
        }
        int shift = FP32_MANTISSA - mantissaBits;
        int rest = bits & 0x7FFFFFFF;
        int rounded = rest + (1 << shift - 1) - 1 + (rest >>> shift & 1);
        return (byte) (sign | (rounded >>> shift) - (FP32_BIAS - bias << mantissaBits));
    }
}
