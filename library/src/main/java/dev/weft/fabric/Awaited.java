package dev.weft.fabric;

/**
 * What a wait is for, in words and numbers for the error it may end in. Made when an operator is
 * prepared, so that waiting allocates nothing.
 *
 * @param what in words: {@code chunk}, {@code barrier}
 * @param writer the rank (in the group) that will signal
 * @param source the rank whose rows are awaited, or -1
 * @param chunk its chunk's number, or -1
 */
public record Awaited(String what, int writer, int source, int chunk) {

    public static Awaited of(String what, int writer) {
        return new Awaited(what, writer, -1, -1);
    }

    public static Awaited chunk(int writer, int source, int chunk) {
        return new Awaited("chunk", writer, source, chunk);
    }
}
