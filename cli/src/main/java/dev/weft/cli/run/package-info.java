/**
 * {@code weft run}: inputs, ranks, measurement, verification, summary, and its record. Invariant:
 * every rank does the same job, whether it is a thread, a process, started by MPI, or on a GPU.
 */
package dev.weft.cli.run;
