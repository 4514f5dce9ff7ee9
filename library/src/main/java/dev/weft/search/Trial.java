package dev.weft.search;

/**
 * Turns candidates into something that can be called and timed. The methods are collective: all
 * ranks call them in the same order.
 *
 * @param <T> what a candidate becomes
 */
public interface Trial<T> {

    /** Makes a candidate ready for timed calls. If it fails, nothing of it is left. */
    T prepare(Candidate candidate);

    /** Calls it once, and returns this rank's time in nanoseconds. */
    long callNs(T prepared);

    /** Frees one that is not kept. */
    void close(T prepared);
}
