/**
 * Ranks that can reach each other: memory that peers can write, words that signal, waits that end.
 *
 * <p>Invariants: no wait is without a deadline; a rank that fails, leaves or dies ends the waits of
 * all others with an error that names it; every word has one writer, its values only grow, and a
 * release by the writer pairs with an acquire by the waiter.
 *
 * <p>{@code MemoryFabric} has all waits. Threads, processes and MPI differ in how memory comes
 * about; under MPI ({@code MpiProcess} joins and leaves, {@code MpiMail} is the one thread that
 * calls it) words of ranks on other hosts are mirrored here and rows travel as messages.
 */
package dev.weft.fabric;
