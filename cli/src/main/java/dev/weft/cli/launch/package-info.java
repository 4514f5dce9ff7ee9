/**
 * Processes that are ranks, started here or by mpirun, and watched until they end. Invariant:
 * however the command ends, no process and no file in shared memory is left.
 */
package dev.weft.cli.launch;
