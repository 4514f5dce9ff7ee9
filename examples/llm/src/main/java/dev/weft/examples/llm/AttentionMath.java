package dev.weft.examples.llm;

/**
 * The arithmetic of {@link Attention} for one head of one token. All implementations give the same
 * bits: each element has one order of operations, all of which IEEE 754 defines.
 */
interface AttentionMath {

    /** Places are computed by so many; what is computed after the last one is not used. */
    int PLACES = 64;

    // Of exp, after Cephes: e^x = 2^n e^r, with r at most ln(2) / 2 from zero.
    float LEAST_EXPONENT = -87;
    float LOG2_E = 1.44269504f;
    float LN_2_HIGH = 0.693359375f;
    float LN_2_LOW = -2.12194440e-4f;
    float ROUNDER = 0x1.8p23f;
    float P5 = 1.9875691500e-4f;
    float P4 = 1.3981999507e-3f;
    float P3 = 8.3334519073e-3f;
    float P2 = 4.1665795894e-2f;
    float P1 = 1.6666665459e-1f;
    float P0 = 5.0000001201e-1f;
    int MANTISSA_BITS = 23;
    int BITS_OF_ONE = 0x3f800000;

    /** Vectors where Java was started with {@code --add-modules jdk.incubator.vector}. */
    static AttentionMath best() {
        return ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent()
                ? new VectorAttentionMath()
                : new PlainAttentionMath();
    }

    /**
     * Products of a query with keys: of each place a sum over the columns, in their order.
     *
     * @param keys 64 places after the other; of these by column
     * @param to of the places below {@code count}, and some more
     */
    void scores(float[] query, float[] keys, int count, float[] to);

    /**
     * Turns scores into powers of e, the largest into 1.
     *
     * @param most the largest score
     */
    void powers(float[] scores, float most, int count);

    /**
     * Values times powers: of each column a sum over the places, in their order.
     *
     * @param values by place, as many columns as {@code to} has
     */
    void mix(float[] powers, int count, float[] values, float[] to);

    /** The sum of the powers: eight sums, each of every eighth place, then these in order. */
    static float sum(float[] powers, int count) {
        float[] sums = new float[8];
        int place = 0;
        for (; place + 8 <= count; place += 8) {
            for (int i = 0; i < 8; i++) {
                sums[i] += powers[place + i];
            }
        }
        for (int i = 0; place + i < count; i++) {
            sums[i] += powers[place + i];
        }
        float sum = 0;
        for (float one : sums) {
            sum += one;
        }
        return sum;
    }
}
