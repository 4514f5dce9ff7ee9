package dev.weft.fuzz;

import java.util.List;

/**
 * A reader of outside bytes. For one thread at a time.
 *
 * @param seeds inputs that the reader accepts, from which the others are made
 * @param smokeInputs how many make a smoke test
 * @param freeBytes of heap that any input may cost: buffers, stack traces, messages
 */
record Target(String name, List<byte[]> seeds, Reader reader, int smokeInputs, long freeBytes) {

    private static final int MANY = 1000;
    private static final int FEW = 100;

    Target(String name, List<byte[]> seeds, Reader reader) {
        this(name, seeds, reader, MANY, 1 << 20);
    }

    /**
     * The same where each input takes milliseconds and builds up what has nothing to do with it.
     */
    Target slow() {
        return new Target(name, seeds, reader, FEW, 16 << 20);
    }

    /** Hands an input to a reader. */
    @FunctionalInterface
    interface Reader {

        /**
         * @return bytes that the reader mapped or took outside the Java heap, for as long as they
         *     can be known
         */
        long read(byte[] input) throws Exception;
    }

    Target {
        seeds = List.copyOf(seeds);
        if (seeds.isEmpty()) {
            throw new IllegalArgumentException(name + ": no seeds, expected at least one");
        }
    }
}
