package dev.weft.fabric.transport;

/**
 * What a wait is for, for the error in which it may end. Created when an operator is prepared, so
 * that waiting allocates nothing.
 *
 * @param what in words: {@code chunk}, {@code barrier}
 * @param writer the rank (in the group) that will signal
 * @param source the rank whose rows are awaited, or -1
 * @param chunk its chunk's number, or -1
 * @param lead how far the writer can be past the awaited value; a word further ahead is corrupt
 * @param imminent whether the signal is microseconds away if the writer gets a core
 */
public record Awaited(String what, int writer, int source, int chunk, int lead, boolean imminent) {

    /** For waits that do not know how far ahead a writer can be. */
    public static final int ANY_LEAD = Integer.MAX_VALUE;

    /** That a peer has started the call before this one. */
    public static final String START = "the start of a call";

    /** That a peer has started the call, so that its shard can be read in place. */
    public static final String SHARD = "the shard";

    /** Rows that a peer sends. */
    public static final String CHUNK = "chunk";

    /** Sums that this rank continues. */
    public static final String PARTIAL_SUMS = "sums so far of chunk";

    /** Sums over all of K. */
    public static final String WHOLE_SUMS = "whole sums of chunk";

    /** Sums that a peer has computed separately. */
    public static final String PEER_SUMS = "own sums of chunk";

    /** Sums that another thread of this rank computes. */
    public static final String OWN_THREAD = "this rank's sums of chunk";

    /** That a peer has ended the call, so that its results can be read. */
    public static final String END = "the end of a call";

    /** That a peer has entered a barrier or an exchange. */
    public static final String COLLECTIVE = "a collective call";

    /** That a receiver no longer needs the rows that a transfer will overwrite. */
    public static final String BUFFER = "a free buffer";

    public Awaited {
        if (lead < 0) {
            throw new IllegalArgumentException("a lead of " + lead + ": expected zero or more");
        }
    }

    public Awaited(String what, int writer, int source, int chunk, int lead) {
        this(what, writer, source, chunk, lead, false);
    }

    /** A wait with any lead. */
    public Awaited(String what, int writer, int source, int chunk) {
        this(what, writer, source, chunk, ANY_LEAD);
    }

    public static Awaited of(String what, int writer) {
        return new Awaited(what, writer, -1, -1);
    }

    public static Awaited chunk(int writer, int source, int chunk) {
        return new Awaited(CHUNK, writer, source, chunk);
    }

    /** A copy for a writer that is at most {@code most} past the awaited value. */
    public Awaited within(int most) {
        return new Awaited(what, writer, source, chunk, most, imminent);
    }
}
