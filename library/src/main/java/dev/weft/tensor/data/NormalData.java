package dev.weft.tensor.data;

/**
 * Values of the standard normal distribution, the same bits on every machine: the hash of an index
 * gives a uniform number, the inverse of the normal distribution function gives the value, and both
 * use only arithmetic that Java defines exactly. Immutable and thread-safe.
 *
 * @param stream distinguishes the matrices of one seed
 */
public record NormalData(long seed, long stream) implements DataSource {

    @Override
    public float value(long index) {
        long bits = CounterHash.word(CounterHash.key(seed, stream), index) >>> 12;
        // The middle of one of 2^52 equal intervals: never 0 or 1, exact, symmetric about 1/2.
        return (float) InverseNormal.of((bits + 0.5) * 0x1p-52);
    }
}
