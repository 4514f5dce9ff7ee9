/**
 * What a user has today: programs in other languages and libraries beside which Weft is measured,
 * and how they are started. Their sources in other languages, and in Java for libraries that Maven
 * can fetch, are beside the classes as resources. Invariant: no process of a bench outlives it,
 * short of a kill.
 */
package dev.weft.bench.peers;
