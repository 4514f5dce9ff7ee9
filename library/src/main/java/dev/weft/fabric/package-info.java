/**
 * How ranks reach each other: memory that peers can write, words that signal, and waits with
 * deadlines.
 *
 * <p>Invariants: every wait has a deadline. A rank that fails, leaves or dies ends the waits of all
 * others with an error that names it. Every word has one writer, its values only grow, and a
 * release by the writer pairs with an acquire by the waiter.
 *
 * <p>{@link dev.weft.fabric.World} starts or joins ranks as threads, as processes of one host or
 * under MPI. Each rank then has a {@link dev.weft.fabric.Fabric}:
 *
 * {@snippet :
 * static List<Long> sums() {
 *     try (World world = World.threads(4)) {
 *         return world.call(fabric -> Arrays.stream(fabric.exchange(fabric.rank())).sum());
 *     }
 * }
 * }
 *
 * <p>This package is the contract. {@code dev.weft.fabric.memory} implements it for ranks that
 * share memory, {@code dev.weft.fabric.mpi} for ranks on several hosts.
 */
package dev.weft.fabric;
