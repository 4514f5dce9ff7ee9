/**
 * Ranks that MPI has started, on one host or many. Ranks of one host share memory. To other hosts,
 * words and rectangles of rows are sent as messages, and published words are mirrored.
 *
 * <p>{@code MpiProcess} joins and leaves, {@code MpiProgress} sends and receives. Invariants: one
 * thread, the progress thread, makes every call to MPI; messages between two ranks take effect in
 * the order in which they were sent.
 */
package dev.weft.fabric.mpi;
