/**
 * {@code weft bench}: Weft beside what a user has today, interleaved in one run. Invariant: a row
 * never compares figures of two runs, and a peer that gives a wrong product ends the bench.
 */
package dev.weft.cli.bench;
