package dev.weft.tensor.data;

/**
 * A random 64-bit word for every index, computed without the words before it: element i of the
 * SplitMix64 sequence that starts at the key. So any rank can generate any part of the data, in any
 * order. Pure functions of integers, the same on every machine.
 */
final class CounterHash {

    /** 2^64 divided by the golden ratio, odd: consecutive counters differ in many bits. */
    private static final long GAMMA = 0x9E3779B97F4A7C15L;

    private CounterHash() {}

    /** The key of one stream of one seed; streams of the same seed are unrelated. */
    static long key(long seed, long stream) {
        return mix(mix(seed + GAMMA) + stream * GAMMA + GAMMA);
    }

    static long word(long key, long index) {
        return mix(key + (index + 1) * GAMMA);
    }

    /** The finaliser of SplitMix64: every input bit reaches every output bit. */
    private static long mix(long z) {
        long y = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        long x = (y ^ (y >>> 27)) * 0x94D049BB133111EBL;
        return x ^ (x >>> 31);
    }
}
