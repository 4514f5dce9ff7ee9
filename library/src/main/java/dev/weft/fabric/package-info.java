/**
 * Ranks that can reach each other: memory that peers can write, words that signal, waits that end.
 *
 * <p>Invariants: no wait is without a deadline; a rank that fails, leaves or dies ends the waits of
 * all others with an error that names it; every word has one writer, its values only grow, and a
 * release by the writer pairs with an acquire by the waiter.
 */
package dev.weft.fabric;
