/**
 * The process in which Weft runs: its environment variables, its log and messages, what its threads
 * are called, its waits and its end.
 *
 * <p>Invariants: every fallback that Weft chooses is reported here, once. Text from outside is
 * refused in one line, and made safe before a message shows it. Nothing here starts a thread:
 * callers poll and pass the times.
 */
package dev.weft.process;
