package dev.weft.examples.llm;

import java.util.Comparator;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * Chooses the next token. With the same logits and seed it chooses the same tokens on every
 * machine. For one chat.
 */
public final class Sampler {

    private final double temperature;
    private final double share;
    private final SplittableRandom random;

    private Sampler(double temperature, double share, long seed) {
        this.temperature = temperature;
        this.share = share;
        this.random = new SplittableRandom(seed);
    }

    /** The token with the largest logit; the first of several. */
    public static Sampler greedy() {
        return new Sampler(0, 1, 0);
    }

    /**
     * @param temperature above 0: the higher, the more varied
     * @param share of the probability that the most likely tokens must have together; no others are
     *     chosen
     */
    public static Sampler random(double temperature, double share, long seed) {
        if (!(temperature > 0) || !(share > 0 && share <= 1)) {
            throw new IllegalArgumentException(
                    "temperature %s, share %s: expected more than 0, and a share of at most 1"
                            .formatted(temperature, share));
        }
        return new Sampler(temperature, share, seed);
    }

    int next(float[] logits) {
        int best = 0;
        for (int i = 1; i < logits.length; i++) {
            best = logits[i] > logits[best] ? i : best;
        }
        if (temperature == 0) {
            return best;
        }
        double most = logits[best];
        double[] powers = new double[logits.length];
        double sum = 0;
        for (int i = 0; i < powers.length; i++) {
            powers[i] = StrictMath.exp((logits[i] - most) / temperature);
            sum += powers[i];
        }
        int[] order =
                IntStream.range(0, powers.length)
                        .boxed()
                        .sorted(Comparator.comparingDouble(i -> -powers[i]))
                        .mapToInt(Integer::intValue)
                        .toArray();
        double allowed = 0;
        int count = 0;
        while (count < order.length && (count == 0 || allowed < share * sum)) {
            allowed += powers[order[count++]];
        }
        double left = random.nextDouble() * allowed;
        for (int i = 0; i < count; i++) {
            left -= powers[order[i]];
            if (left < 0) {
                return order[i];
            }
        }
        return order[count - 1];
    }
}
