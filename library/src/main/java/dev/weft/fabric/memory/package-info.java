/**
 * Ranks that share memory: threads of one JVM and processes of one host.
 *
 * <p>{@code MemoryFabric} has all waits and signals, also those of MPI; its subclasses differ in
 * how they allocate memory. {@code ControlBlock} is what a rank tells the others about itself,
 * {@code Health} what it knows about them. {@code Rendezvous} turns processes into ranks.
 *
 * <p>Invariants: a process that dies, however it dies, leaves nothing in shared memory once its
 * peers have ended; only ranks of one user, run and build join one world.
 */
package dev.weft.fabric.memory;
