/**
 * {@code weft bench}: Weft beside what a user has today, interleaved in one run. Invariant: a row
 * never compares figures of two runs. A wrong product ends the CPU bench; in the GPU bench its row
 * says FAILED, and the exit code is 1.
 */
package dev.weft.bench;
