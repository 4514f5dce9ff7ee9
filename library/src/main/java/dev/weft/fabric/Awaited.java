package dev.weft.fabric;

/**
 * What a wait is for, in words and numbers for the error it may end in. Made when an operator is
 * prepared, so that waiting allocates nothing.
 *
 * @param what in words: {@code chunk}, {@code barrier}
 * @param writer the rank (in the group) that will signal
 * @param source the rank whose rows are awaited, or -1
 * @param chunk its chunk's number, or -1
 * @param lead how far past the awaited value the writer can rightly be; a word further on is no
 *     signal, but corrupt
 */
public record Awaited(String what, int writer, int source, int chunk, int lead) {

    /** A lead of those who cannot tell how far a writer may be. */
    public static final int ANY_LEAD = Integer.MAX_VALUE;

    /** What one awaits who needs a peer to have started a call before the next one begins. */
    public static final String START = "the start of a call";

    /** What one awaits who reads a peer's shard in place: that the peer has started the call. */
    public static final String SHARD = "the shard";

    /** What one awaits in a barrier or an exchange. */
    public static final String COLLECTIVE = "a collective call";

    /** What one awaits whose transfer would overwrite rows that its receiver still needs. */
    public static final String BUFFER = "a free buffer";

    public Awaited {
        if (lead < 0) {
            throw new IllegalArgumentException("a lead of " + lead + ": expected zero or more");
        }
    }

    /** With any lead. */
    public Awaited(String what, int writer, int source, int chunk) {
        this(what, writer, source, chunk, ANY_LEAD);
    }

    public static Awaited of(String what, int writer) {
        return new Awaited(what, writer, -1, -1);
    }

    public static Awaited chunk(int writer, int source, int chunk) {
        return new Awaited("chunk", writer, source, chunk);
    }

    /** The same from a writer that is at most {@code most} past the awaited value. */
    public Awaited within(int most) {
        return new Awaited(what, writer, source, chunk, most);
    }
}
