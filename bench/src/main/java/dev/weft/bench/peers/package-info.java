/**
 * What a user has today: programs in other languages and libraries beside which Weft is measured,
 * and how they are started. Invariant: no process of a bench outlives it, short of a kill.
 */
package dev.weft.bench.peers;
